// Package kubelet knows the service accounts of this machine's pods.
//
// It believes the kubelet that the pinned authority vouches for, and a file that only administrators of the machine can
// write. An account is the answer to a whole pod (uid, namespace and name), and never to a part of one.
package kubelet
