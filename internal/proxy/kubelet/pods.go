package kubelet

import (
	"fmt"

	"sigs.k8s.io/json"

	"github.com/pipeguard/pipeguard/internal/core/caller"
)

// maxPods is several times what a kubelet runs.
const maxPods = 4096

// pods are service accounts by pod. What is here never changes in Kubernetes while the pod exists.
type pods map[caller.Pod]string

// find returns "" for a pod that is not there. Nothing of it but uid, namespace and name is looked at.
func (p pods) find(pod caller.Pod) string {
	pod.ServiceAccount = ""
	return p[pod]
}

// collect keeps one account for each uid: where two pods claim one, neither has an account.
func collect(listed []caller.Pod) (pods, error) {
	if len(listed) > maxPods {
		return nil, fmt.Errorf("%d pods; %d are the bound", len(listed), maxPods)
	}
	claims := make(map[string]int, len(listed))
	for _, p := range listed {
		claims[p.UID]++
	}
	found := make(pods, len(listed))
	for _, p := range listed {
		account := p.ServiceAccount
		if p.UID == "" || claims[p.UID] > 1 || !caller.IsSubdomain(account) {
			continue
		}
		p.ServiceAccount = ""
		found[p] = account
	}
	return found, nil
}

// podList is what is read of a PodList (core/v1). The rest of it, which pods' authors write, is passed over.
type podList struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Items      []struct {
		Metadata struct {
			Name      string `json:"name"`
			Namespace string `json:"namespace"`
			UID       string `json:"uid"`
		} `json:"metadata"`
		Spec struct {
			ServiceAccountName string `json:"serviceAccountName"`
		} `json:"spec"`
	} `json:"items"`
}

// decodeList tells upper case from lower, as Kubernetes does and encoding/json does not.
func decodeList(content []byte) (pods, error) {
	var list podList
	if err := json.UnmarshalCaseSensitivePreserveInts(content, &list); err != nil {
		return nil, err
	}
	if list.APIVersion != "v1" || list.Kind != "PodList" {
		return nil, fmt.Errorf("%.100q of %.100q, and not a list of pods", list.Kind, list.APIVersion)
	}
	listed := make([]caller.Pod, len(list.Items))
	for i, item := range list.Items {
		listed[i] = caller.Pod{
			Namespace: item.Metadata.Namespace, Name: item.Metadata.Name, UID: item.Metadata.UID,
			ServiceAccount: item.Spec.ServiceAccountName,
		}
	}
	return collect(listed)
}
