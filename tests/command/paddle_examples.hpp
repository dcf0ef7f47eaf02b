// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Jobs of PaddlePaddle's EDL.
namespace paddle {

/// Their example, as it is published.
inline constexpr char example_job[] = R"(apiVersion: paddlepaddle.org/v1
kind: TrainingJob
metadata:
  name: example
spec:
  image: "paddlepaddle/paddlecloud-job"
  port: 7164
  ports_num: 1
  ports_num_for_sparse: 1
  fault_tolerant: true
  trainer:
    entrypoint: "python train_ft.py"
    workspace: "/workspace"
    passes: 50
    min-instance: 2
    max-instance: 10
    resources:
      limits:
        #alpha.kubernetes.io/nvidia-gpu: 1
        cpu: "200m"
        memory: "200Mi"
      requests:
        cpu: "200m"
        memory: "200Mi"
  pserver:
    min-instance: 2
    max-instance: 2
    resources:
      limits:
        cpu: "800m"
        memory: "1Gi"
      requests:
        cpu: "500m"
        memory: "600Mi"
  master:
    resources:
      limits:
        cpu: "500m"
        memory: "600Mi"
      requests:
        cpu: "500m"
        memory: "600Mi"
)";

/// Fields that it lacks and one of the two generations knows.
inline constexpr char later_fields[] = R"(
metadata:
  namespace: paddlecloud
  labels: {team: vision}
  annotations: {kubectl.kubernetes.io/last-applied-configuration: "{}"}
spec:
  passes: 5
  host_network: true
  HostNetwork: true
  nodeSelector: {disk: ssd}
  imagePullSecrets: [{name: one}, {name: two}]
  volumes: [{name: data, hostPath: {path: /data}}]
  VolumeMounts: [{name: data, mountPath: /data}]
  trainer:
    etcd-endpoint: http://etcd:2379
    replicaSpec: {}
    resources:
      limits: {cpu: 2, memory: 1.5Gi, alpha.kubernetes.io/nvidia-gpu: 1, rdma/hca: 1}
      requests: {cpu: 1, memory: null}
  pserver: {max-instance: 3}
  master: {etcd-endpoint: ""}
)";

}  // namespace paddle
