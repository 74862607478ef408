// Package kubelet looks up the service accounts of this machine's pods in the kubelet.
//
// It trusts the kubelet whose certificate the pinned authority has signed, and a file that only administrators of the machine can
// write. An account is the answer to a whole pod (uid, namespace and name), and never to a part of one.
package kubelet
