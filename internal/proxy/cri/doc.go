// Package cri knows the containers of this machine and the pods that they belong to, from the container runtime.
//
// It believes a runtime that runs as the system's own account. Whoever may speak to that runtime, who is an
// administrator of the machine, can make containers of any pod. The labels that it reads are the kubelet's: a pod's own
// labels and annotations do not reach them, and annotations, which a pod's author chooses, are not read at all.
package cri
