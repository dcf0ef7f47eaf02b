// SPDX-License-Identifier: Apache-2.0
#include "commands.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <set>

#include "cluster/audit.hpp"
#include "cluster/change.hpp"
#include "cluster/cluster.hpp"
#include "cluster/controller.hpp"
#include "cluster/dashboard.hpp"
#include "cluster/explain.hpp"
#include "cluster/get.hpp"
#include "cluster/history.hpp"
#include "cluster/logs.hpp"
#include "cluster/rbac.hpp"
#include "completion.hpp"
#include "data/analyze.hpp"
#include "data/data.hpp"
#include "data/tokenize.hpp"
#include "edl/cli/nearest.hpp"
#include "edl/cli/program.hpp"
#include "edl/core/error.hpp"
#include "edl/version.hpp"
#include "export.hpp"
#include "import/import.hpp"
#include "simulate/simulate.hpp"
#include "submit/convert.hpp"
#include "submit/doctor.hpp"
#include "submit/serve.hpp"
#include "submit/slurm.hpp"
#include "submit/submission_flags.hpp"
#include "submit/submit_training_job.hpp"
#include "submit/sweep.hpp"
#include "submit/train.hpp"
#include "zoo/zoo.hpp"

namespace edl::tool {
namespace {

/// The same function for each of several commands, which it is told.
template <int (*F)(std::string const&, words const&), char const* Name>
int as(words const& line) {
  return F(Name, line);
}
template <char const* Name>
std::vector<flag> job_flags_of() {
  return submission_flags(Name);
}
template <char const* Name>
int zoo_as(words const& line) {
  words all{Name};
  all.insert(all.end(), line.begin(), line.end());
  return zoo(all);
}
template <char const* Name>
std::vector<flag> zoo_flags_of() {
  return zoo_flags(Name);
}
constexpr char train[] = "train", evaluate[] = "evaluate", predict[] = "predict", init[] = "init",
               build[] = "build", push[] = "push";

/// The commands whose first word is `group`.
std::vector<command const*> commands_in(std::string const& group) {
  std::vector<command const*> all;
  for (command const& c : commands())
    if (c.name.starts_with(group + " ")) all.push_back(&c);
  return all;
}

std::string group_help(std::string const& group) {
  std::string text = fmt::format("usage: edl {} COMMAND [arguments] [flags]\n\nCommands\n", group);
  for (command const* c : commands_in(group)) text += fmt::format("  {:<14} {}\n", c->name, c->help);
  return text + fmt::format("\n`edl {} COMMAND --help` describes one.\n", group);
}

int dispatch(words const& line) {
  if (line.empty()) {
    fmt::print(stderr, "{}", help());
    return wrong_usage;
  }
  if (line[0] == "--version" || line[0] == "version") {
    fmt::print("edl {}\n", edl::package_version);
    return done;
  }
  if (line[0] == "--help" || line[0] == "-h" || line[0] == "help") {
    words of(line.begin() + 1, line.end());
    std::erase_if(of, [](std::string const& word) { return word == "--help" || word == "-h"; });
    if (of.size() == 1 && !commands_in(of[0]).empty())
      fmt::print("{}", group_help(of[0]));
    else
      fmt::print("{}", of.empty() ? help() : help(*find_command(of).first));
    return done;
  }
  if (line.size() == 2 && cli::asks_for_help(line) && !commands_in(line[0]).empty()) {
    fmt::print("{}", group_help(line[0]));
    return done;
  }
  if (line[0] == "__complete") return print_completions({line.begin() + 1, line.end()});
  auto const [c, named] = find_command(line);
  words const rest(line.begin() + std::ptrdiff_t(named), line.end());
  if (cli::asks_for_help(rest)) {
    fmt::print("{}", help(*c));
    return done;
  }
  return c->run(rest);
}

}  // namespace

std::vector<command> const& commands() {
  static std::vector<command> const all{
      {"train", "--job_name=NAME --image_name=IMAGE --model_def=PROGRAM --training_data=PATH [flags]",
       "train a model in the cluster",
       "edl train --job_name=mnist --image_name=zoo:1 --model_def=mnist --training_data=/data/train \\\n"
       "    --num_workers=4 --num_ps_pods=2 --volume=claim_name=data,mount_path=/data\n"
       "edl train -f job.yaml --num_workers=8 --follow\n"
       "edl train -f job.yaml --yaml=-",
       job_flags_of<train>, as<submit, train>},
      {"evaluate",
       "--job_name=NAME --image_name=IMAGE --model_def=PROGRAM --validation_data=PATH "
       "--checkpoint_dir_for_init=DIR [flags]",
       "compute the metrics of a checkpoint in the cluster",
       "edl evaluate --job_name=mnist-eval --image_name=zoo:1 --model_def=mnist --validation_data=/data/test "
       "\\\n"
       "    --checkpoint_dir_for_init=/data/out/version-1876 --volume=claim_name=data,mount_path=/data "
       "--wait",
       job_flags_of<evaluate>, as<submit, evaluate>},
      {"predict",
       "--job_name=NAME --image_name=IMAGE --model_def=PROGRAM --prediction_data=PATH "
       "--checkpoint_dir_for_init=DIR [flags]",
       "apply a checkpoint to records in the cluster",
       "edl predict --job_name=mnist-predict --image_name=zoo:1 --model_def=mnist "
       "--prediction_data=/data/new \\\n"
       "    --prediction_outputs=/data/out --checkpoint_dir_for_init=/data/out/version-1876 \\\n"
       "    --volume=claim_name=data,mount_path=/data",
       job_flags_of<predict>, as<submit, predict>},
      {"sweep",
       "--job_name=NAME --by=METRIC --grid=NAME=VALUE,… --max_step=N --image_name=IMAGE "
       "--model_def=PROGRAM --training_data=PATH --validation_data=PATH [flags]",
       "search hyperparameters by jobs in the cluster, and report the best",
       "edl sweep --job_name=rates --image_name=zoo:1 --model_def=mnist --training_data=/data/train \\\n"
       "    --validation_data=/data/test --volume=claim_name=data,mount_path=/data "
       "--checkpoint_dir=/data/rates \\\n"
       "    --by=accuracy --max_step=800 --halving=2 --grid rate=0.001,0.01,0.1 --grid dropout=0,0.5\n"
       "edl sweep -f job.yaml --by=loss --max_step=800 --random rate=0.001:0.1:log --trials=20 --dry_run",
       cluster_sweep_flags, sweep},
      {"submit",
       "[train|evaluate|predict] [-f FILE] [flags]",
       "make a TrainingJob, which shares the cluster with others",
       "edl submit -f k8s/trainingjob-example.yaml --follow\n"
       "edl submit --job_name=mnist --image_name=zoo:1 --model_def=mnist --training_data=/data/train \\\n"
       "    --min_workers=2 --max_workers=16 --num_ps_pods=2 --volume=claim_name=data,mount_path=/data\n"
       "edl submit -f job.yaml --dry_run=server",
       submit_training_job_flags,
       submit_training_job,
       {"train", "evaluate", "predict"}},
      {"convert", "FILE [flags of edl train]",
       "print a job of PaddlePaddle's EDL, or a file of flags, as a TrainingJob",
       "edl convert examplejob.yaml --model_def=fit_a_line --training_data=/data/housing -o job.yaml\n"
       "edl convert job.yaml --min_workers=2 --max_workers=8",
       convert_job_flags, convert_job},
      {"get",
       "jobs [NAME] [flags]",
       "list jobs, with their progress and their pods",
       "edl get jobs\nedl get jobs -A -o json",
       get_flags,
       get,
       {"jobs"}},
      {"describe",
       "JOB [flags]",
       "show a job, its pods and their events",
       "edl describe mnist",
       describe_flags,
       describe_job,
       {},
       true},
      {"logs",
       "JOB [flags]",
       "print the logs of a job's pods",
       "edl logs mnist -f\nedl logs mnist --role worker --index 3 --tail 20",
       logs_flags,
       logs,
       {},
       true},
      {"explain",
       "JOB [flags]",
       "explain why a job waits, and why its pods were replaced",
       "edl explain mnist",
       explain_flags,
       explain,
       {},
       true},
      {"scale",
       "JOB [--num_workers=N|auto] [--num_ps_pods=M] [flags]",
       "change the number of pods of a running job",
       "edl scale mnist --num_workers=8",
       scale_flags,
       scale,
       {},
       true},
      {"suspend",
       "JOB [flags]",
       "stop a TrainingJob, so that it can go on later",
       "edl suspend mnist --wait",
       suspend_flags,
       suspend,
       {},
       true},
      {"resume",
       "JOB [flags]",
       "let a suspended TrainingJob go on, from its checkpoint",
       "edl resume mnist",
       resume_flags,
       resume,
       {},
       true},
      {"delete",
       "JOB… [flags]",
       "remove a job with all of its pods",
       "edl delete mnist --wait",
       remove_flags,
       remove,
       {},
       true},
      {"audit",
       "DIRECTORY|JOB [flags]",
       "account for every record",
       "edl audit /data/checkpoints\nedl audit mnist",
       audit_flags,
       audit,
       {},
       true},
      {"history",
       "DIRECTORY|JOB [flags]",
       "print or draw the course of the loss and the metrics of a training",
       "edl history /data/checkpoints --plot=curve.svg\nedl history mnist -o csv",
       history_flags,
       print_history,
       {},
       true},
      {"dashboard", "[DIRECTORY] [flags]", "serve a page over a cluster's jobs, or over a directory's runs",
       "edl dashboard\nedl dashboard trials --port=8080", dashboard_flags, show_dashboard},
      {"zoo init", "[flags]", "make a model zoo in this directory", "edl zoo init --model_zoo=model_zoo",
       zoo_flags_of<init>, zoo_as<init>},
      {"zoo build", "--image=NAME [DIRECTORY] [-- engine's arguments]", "build a zoo's image",
       "edl zoo build --image=zoo:1 .", zoo_flags_of<build>, zoo_as<build>},
      {"zoo push", "IMAGE", "push an image to its registry", "edl zoo push registry.example.com/zoo:1",
       zoo_flags_of<push>, zoo_as<push>},
      {"data inspect", "PATH [flags]", "describe the records at a path", "edl data inspect data/mnist/train",
       inspect_flags, inspect},
      {"data analyze", "PATH [flags]", "compute the statistics of each feature, for a model to use",
       "edl data analyze data/census/train\nedl data analyze census.csv --to=statistics", analyze_flags,
       analyze},
      {"data convert", "--from=PATH --to=DIRECTORY [flags]", "write records of any format as RecordIO files",
       "edl data convert --from=cifar-10-batches-bin/train --to=data/cifar10/train", convert_flags, convert},
      {"data make", "DIRECTORY [flags]", "write published data sets or drawn digits as RecordIO files",
       "edl data make data", make_flags, make},
      {"data tokenize", "--tokenizer=FILE --output=FILE INPUT… [flags]",
       "write texts as the tokens of a tokenizer",
       "edl data tokenize --tokenizer=tokenizer.json --output=train.tokens --end_token='<|endoftext|>' "
       "books/*.txt\n"
       "edl data tokenize --tokenizer=tokenizer.json --output=train.tokens --text=content pages.jsonl.zst",
       tokenize_flags, tokenize},
      {"data train-tokenizer", "--vocab_size=N --output=FILE INPUT… [flags]", "make a tokenizer of texts",
       "edl data train-tokenizer --vocab_size=32000 --output=tokenizer.json books/*.txt",
       train_tokenizer_flags, train_tokenizer},
      {"simulate", "[WORKLOAD…] [flags]", "predict the autoscaler's decisions for a workload in a cluster",
       "edl simulate examples/simulate/two-teams.yaml --svg=two-teams.svg\n"
       "edl simulate --generate=100 --nodes=50 --policy=completion\n"
       "edl simulate workload-1.csv --applications=traces --batch=changing",
       simulate_flags, simulate},
      {"serve", "--image_name=IMAGE --model_path=PATH [flags]",
       "print the objects that serve a model in a cluster",
       "edl serve --image_name=registry.example.com/mnist:1 --model_path=/data/checkpoints | kubectl apply "
       "-f -",
       serve_flags, serve},
      {"export", "PROGRAM --checkpoint_dir_for_init=MODEL --export_onnx=FILE [flags]",
       "write a trained model as ONNX, by its program on this machine",
       "edl export build/mnist --checkpoint_dir_for_init=checkpoints --export_onnx=mnist.onnx\n"
       "edl export build/mnist --checkpoint_dir_for_init=model --export_onnx=mnist.onnx --export_preprocess",
       export_flags, export_model},
      {"import", "NET.onnx [flags]", "write a network of ONNX as a model's source and its weights",
       "edl import resnet.onnx\nedl import bert.onnx --extent=sequence=128 --to=bert", import_flags,
       import_model},
      {"controller install", "[flags]", "make TrainingJobs known to a cluster, and run their controller",
       "edl controller install\nedl controller install --image=registry.example.com/edl-controller:1\n"
       "edl controller install --yaml=- | kubectl delete -f -",
       install_controller_flags, install_controller},
      {"rbac", "[flags]", "print or apply the permissions that jobs need in a namespace",
       "edl rbac -n team\nedl rbac --apply", rbac_flags, rbac},
      {"doctor", "[flags]", "check access, permissions, images and volumes",
       "edl doctor\nedl doctor -n team --volume=claim_name=data,mount_path=/data", doctor_flags, doctor},
      {"slurm", "[flags] -- PROGRAM train [flags of the program]",
       "print the batch script that runs a job in Slurm",
       "edl slurm --sbatch=--time=8:00:00 --worker_sbatch=--partition=spot -- ./mnist train \\\n"
       "    --training_data=/data/train --checkpoint_dir=/data/mnist --num_workers=4 > mnist.sh\n"
       "sbatch mnist.sh",
       slurm_flags, slurm},
      {"completion",
       "bash|zsh|fish",
       "print the script by which a shell completes edl's commands and flags",
       "source <(edl completion bash)",
       completion_flags,
       completion,
       {"bash", "zsh", "fish"}},
  };
  return all;
}

std::pair<command const*, std::size_t> find_command(words const& line) {
  words names;
  std::set<std::string> groups;
  for (command const& c : commands()) {
    if (!line.empty() && c.name == line[0]) return {&c, 1};
    if (line.size() > 1 && c.name == line[0] + " " + line[1]) return {&c, 2};
    names.push_back(c.name);
    if (auto const space = c.name.find(' '); space != c.name.npos) groups.insert(c.name.substr(0, space));
  }
  if (!line.empty() && groups.count(line[0]) > 0) {
    words in;
    for (std::string const& n : names)
      if (n.rfind(line[0] + " ", 0) == 0) in.push_back(n.substr(line[0].size() + 1));
    std::string const near = line.size() > 1 ? cli::nearest(line[1], in) : "";
    std::string list;
    for (std::string const& n : in) list += (list.empty() ? "" : &n == &in.back() ? " or " : ", ") + n;
    throw usage_error(fmt::format(
        "{}: expected {}{}",
        fmt::join(line.begin(), line.begin() + std::min<std::ptrdiff_t>(2, line.end() - line.begin()), " "),
        list, near.empty() ? "" : "; did you mean " + near + "?"));
  }
  names.insert(names.end(), groups.begin(), groups.end());
  std::string const near = line.empty() ? "" : cli::nearest(line[0], names);
  throw usage_error(fmt::format("unknown command '{}'{}", line.empty() ? "" : line[0],
                                near.empty() ? "; `edl --help` lists all" : ": did you mean " + near + "?"));
}

std::string help() {
  std::string text =
      "edl: elastic deep learning on Kubernetes\n\n"
      "usage: edl COMMAND [arguments] [flags]\n\nCommands\n";
  for (command const& c : commands()) text += fmt::format("  {:<14} {}\n", c.name, c.help);
  text += fmt::format("  {:<14} {}\n", "help", "describe a command: edl help COMMAND, or edl COMMAND --help");
  text += fmt::format("  {:<14} {}\n", "--version", "print the version");
  return text +
         "\nExit codes\n"
         "  0  done\n"
         "  1  failed: a job, a build, a check, a file\n"
         "  2  the command line, a file that it names or the kubeconfig is wrong\n"
         "  3  the cluster refused: not allowed, taken already, not valid, quota\n"
         "  4  the cluster cannot be reached\n";
}

std::string help(command const& c) {
  std::string text = fmt::format("{}{}\n\nusage: edl {} {}\n", char(std::toupper(c.help[0])),
                                 c.help.substr(1), c.name, c.arguments);
  std::string examples;
  for (std::size_t at = 0; at < c.examples.size();) {
    auto const end = std::min(c.examples.find('\n', at), c.examples.size());
    examples += "  " + c.examples.substr(at, end - at) + "\n";
    at = end + 1;
  }
  bool const is_job = c.name == train || c.name == evaluate || c.name == predict;
  bool const is_sweep = c.flags == cluster_sweep_flags;
  auto const flags = is_job ? job_flags() : is_sweep ? sweep_job_flags() : c.flags();
  if (!flags.empty()) text += "\nFlags\n" + describe(flags);
  if (is_job || is_sweep || c.flags == submit_training_job_flags || c.flags == convert_job_flags) {
    std::string gone;
    for (gone_flag const& g : gone_flags()) gone += (gone.empty() ? "--" : ", --") + g.flag.name;
    text += "\nFlags of the model's program, which are checked and handed on to it\n\n" +
            describe(is_sweep ? sweep_model_flags() : model_flags(is_job ? c.name : train)) +
            "\nFlags that are read and do nothing, with a note: " + gone + "\n";
  }
  return text + "\nExamples\n" + examples;
}

int run(words const& line) {
  cli::hold_standard_streams();
  try {
    int const code = dispatch(line);
    cli::flush_output();
    return code;
  } catch (usage_error const& bad) {
    say(bad.what());
    return wrong_usage;
  } catch (kubernetes::api_error const& bad) {
    say(bad.what());
    return refused;
  } catch (kubernetes::unreachable const& bad) {
    say(bad.what());
    return cannot_reach;
  } catch (std::exception const& bad) {
    say(cli::text_of(bad));
    return failed;
  }
}

}  // namespace edl::tool
