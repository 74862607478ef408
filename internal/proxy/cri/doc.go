// Package cri looks up the containers of this machine and their pods in the container runtime.
//
// It trusts a runtime that runs as the system's own account. A client of that runtime, which is an
// administrator of the machine, can make containers of any pod. The labels that it reads are the kubelet's: a pod's own
// labels and annotations do not reach them, and annotations, which a pod's author chooses, are not read at all.
package cri
