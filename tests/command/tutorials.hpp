// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Command lines of published tutorials, as they are printed.
namespace tutorials {

inline constexpr char minikube_ps[] = R"(elasticdl train \
  --image_name=elasticdl:mnist_ps \
  --model_zoo=model_zoo \
  --model_def=mnist.mnist_functional_api.custom_model \
  --training_data=/data/mnist/train \
  --validation_data=/data/mnist/test \
  --num_epochs=2 \
  --master_resource_request="cpu=0.2,memory=1024Mi" \
  --master_resource_limit="cpu=1,memory=2048Mi" \
  --worker_resource_request="cpu=0.4,memory=1024Mi" \
  --worker_resource_limit="cpu=1,memory=2048Mi" \
  --ps_resource_request="cpu=0.2,memory=1024Mi" \
  --ps_resource_limit="cpu=1,memory=2048Mi" \
  --minibatch_size=64 \
  --num_minibatches_per_task=2 \
  --num_ps_pods=1 \
  --num_workers=1 \
  --evaluation_steps=50 \
  --job_name=test-mnist \
  --image_pull_policy=Never \
  --volume="host_path=/data,mount_path=/data" \
  --distribution_strategy=ParameterServerStrategy)";

inline constexpr char minikube_allreduce[] = R"(elasticdl train \
  --image_name=elasticdl:mnist_allreduce \
  --model_zoo=model_zoo \
  --model_def=mnist.mnist_functional_api.custom_model \
  --training_data=/data/mnist/train \
  --num_epochs=1 \
  --master_resource_request="cpu=0.2,memory=1024Mi" \
  --master_resource_limit="cpu=1,memory=2048Mi" \
  --worker_resource_request="cpu=0.4,memory=1024Mi" \
  --worker_resource_limit="cpu=1,memory=2048Mi" \
  --minibatch_size=64 \
  --num_minibatches_per_task=2 \
  --num_workers=2 \
  --job_name=test-mnist-allreduce \
  --image_pull_policy=Never \
  --volume="host_path=/data,mount_path=/data" \
  --distribution_strategy=AllreduceStrategy)";

inline constexpr char gke_2020[] = R"(python -m elasticdl.python.elasticdl.client train \
--image_base=elasticdl:ci \
--docker_image_repository=gcr.io/${PROJECT_ID} \
--model_zoo=model_zoo \
--model_def=mnist_functional_api.mnist_functional_api.custom_model \
--training_data=/data/mnist/train \
--validation_data=/data/mnist/test \
--num_epochs=5 \
--master_resource_request="cpu=2,memory=2048Mi" \
--master_resource_limit="cpu=2,memory=2048Mi" \
--master_pod_priority=high \
--worker_resource_request="cpu=2,memory=2048Mi" \
--worker_resource_limit="cpu=2,memory=2048Mi" \
--worker_pod_priority=low \
--ps_resource_request="cpu=2,memory=2048Mi" \
--ps_resource_limit="cpu=2,memory=2048Mi" \
--ps_pod_priority=high \
--minibatch_size=64 \
--num_minibatches_per_task=64 \
--num_ps_pods=2 \
--num_workers=4 \
--evaluation_steps=200 \
--grads_to_wait=1 \
--job_name=test-mnist \
--log_level=INFO \
--image_pull_policy=Always \
--volume="mount_path=/data,claim_name=fileserver-claim" \
--distribution_strategy=ParameterServerStrategy)";

inline constexpr char gke_2019[] = R"(python -m elasticdl.python.elasticdl.client train \
    --job_name=low-prio-job \
    --model_def=elasticdl/python/examples/mnist_subclass \
    --training_data_dir=${MNIST_DATA_DIR}/train \
    --evaluation_data_dir=${MNIST_DATA_DIR}/test \
    --master_pod_priority=high-priority \
    --worker_pod_priority=low-priority \
    --num_epochs=1 \
    --minibatch_size=10 \
    --records_per_task=100 \
    --num_workers=2 \
    --checkpoint_steps=2 \
    --master_resource_request="cpu=1,memory=1024Mi" \
    --master_resource_limit="cpu=1,memory=1024Mi" \
    --worker_resource_request="cpu=3,memory=4096Mi" \
    --worker_resource_limit="cpu=3,memory=4096Mi" \
    --grads_to_wait=2 \
    --volume="volume_name=data-volume,mount_path=/data,claim_name=fileserver-claim" \
    --log_level=INFO \
    --docker_image_prefix=gcr.io/${PROJECT_ID})";

}  // namespace tutorials
