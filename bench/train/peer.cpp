// SPDX-License-Identifier: Apache-2.0
// Training steps of libtorch, for bench-train: reads "steps N" or "memory" by lines, answers with one line
// each.
#include <torch/torch.h>

#include <chrono>
#include <fstream>
#include <iostream>
#include <map>
#include <string>

namespace nn = torch::nn;

namespace {

nn::Conv2d convolution(int before, int filters, int stride = 1, int kernel = 3, bool bias = false) {
  return nn::Conv2d(nn::Conv2dOptions(before, filters, kernel).stride(stride).padding(kernel / 2).bias(bias));
}

struct BlockImpl : nn::Module {
  BlockImpl(int before, int filters, int stride)
      : body(convolution(before, filters, stride), nn::BatchNorm2d(filters), nn::ReLU(),
             convolution(filters, filters), nn::BatchNorm2d(filters)) {
    register_module("body", body);
    if (stride != 1 || before != filters)
      projection = register_module(
          "projection", nn::Sequential(convolution(before, filters, stride, 1), nn::BatchNorm2d(filters)));
  }
  torch::Tensor forward(torch::Tensor x) {
    return torch::relu(body->forward(x) + (projection ? projection->forward(x) : x));
  }
  nn::Sequential body, projection{nullptr};
};
TORCH_MODULE(Block);

nn::Sequential mnist() {
  return nn::Sequential(nn::Conv2d(1, 32, 3), nn::ReLU(), nn::Conv2d(32, 64, 3), nn::ReLU(),
                        nn::BatchNorm2d(nn::BatchNorm2dOptions(64).eps(1e-3).momentum(0.01)),
                        nn::MaxPool2d(2), nn::Dropout(0.25), nn::Flatten(), nn::Linear(9216, 10));
}

nn::Sequential mlp() {
  return nn::Sequential(nn::Linear(784, 512), nn::ReLU(), nn::Linear(512, 512), nn::ReLU(),
                        nn::Linear(512, 10));
}

nn::Sequential cifar() {
  nn::Sequential all;
  int before = 3;
  for (auto const& [filters, rate] : {std::pair{32, 0.2}, {64, 0.3}, {128, 0.4}}) {
    for (int i = 0; i < 2; ++i, before = filters) {
      all->push_back(convolution(before, filters, 1, 3, true));
      all->push_back(nn::BatchNorm2d(nn::BatchNorm2dOptions(filters).eps(1e-6)));
      all->push_back(nn::ReLU());
    }
    all->push_back(nn::MaxPool2d(2));
    all->push_back(nn::Dropout(rate));
  }
  all->push_back(nn::Flatten());
  all->push_back(nn::Linear(2048, 10));
  return all;
}

nn::Sequential resnet(int first, std::initializer_list<std::array<int, 3>> stages) {
  nn::Sequential all(convolution(3, first), nn::BatchNorm2d(first), nn::ReLU());
  int before = first;
  for (auto const& [filters, blocks, stride] : stages)
    for (int i = 0; i < blocks; ++i, before = filters) all->push_back(Block(before, filters, i ? 1 : stride));
  all->push_back(nn::AdaptiveAvgPool2d(1));
  all->push_back(nn::Flatten());
  all->push_back(nn::Linear(before, 10));
  return all;
}

}  // namespace

int main(int argc, char** argv) {
  std::map<std::string, std::string> options;
  for (int i = 1; i + 1 < argc; i += 2) options[argv[i]] = argv[i + 1];
  int const batch = std::stoi(options["--batch"]);
  torch::set_num_threads(std::stoi(options["--threads"]));
  torch::manual_seed(1);
  std::string const what = options["--workload"];
  nn::Sequential network = what == "mnist"   ? mnist()
                           : what == "mlp"   ? mlp()
                           : what == "cifar" ? cifar()
                           : what == "resnet20"
                               ? resnet(16, {{16, 3, 1}, {32, 3, 2}, {64, 3, 2}})
                               : resnet(64, {{64, 2, 1}, {128, 2, 2}, {256, 2, 2}, {512, 2, 2}});
  auto x = what == "mlp" ? torch::rand({batch, 784})
                         : torch::rand({batch, what == "mnist" ? 1 : 3, what == "mnist" ? 28 : 32,
                                        what == "mnist" ? 28 : 32});
  auto const labels = torch::arange(batch, torch::kLong).remainder(10);
  if (options["--mode"] == "channels_last") {
    network->to(torch::kFloat);
    for (auto& p : network->parameters())
      if (p.dim() == 4) p.set_data(p.contiguous(torch::MemoryFormat::ChannelsLast));
    if (x.dim() == 4) x = x.contiguous(torch::MemoryFormat::ChannelsLast);
  }
  torch::optim::SGD optimizer(network->parameters(), torch::optim::SGDOptions(0.01).momentum(0.9));
  network->train();
  auto const step = [&] {
    optimizer.zero_grad();
    torch::nn::functional::cross_entropy(network->forward(x), labels).backward();
    optimizer.step();
  };
  for (int i = 0; i < 3; ++i) step();
  std::cout << "ready" << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
    if (line.rfind("steps ", 0) == 0) {
      for (int i = std::stoi(line.substr(6)); i > 0; --i) {
        auto const begin = std::chrono::steady_clock::now();
        step();
        std::cout
            << std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count()
            << ' ';
      }
      std::cout << std::endl;
    } else {
      std::ifstream status("/proc/self/status");
      for (std::string entry; std::getline(status, entry);)
        if (entry.rfind("VmHWM:", 0) == 0) std::cout << std::stoll(entry.substr(6)) * 1024 << std::endl;
    }
  }
}
