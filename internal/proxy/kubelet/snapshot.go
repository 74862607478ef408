package kubelet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"

	"sigs.k8s.io/json"

	"github.com/pipeguard/pipeguard/internal/core/caller"
	"github.com/pipeguard/pipeguard/internal/filetrust"
	"github.com/pipeguard/pipeguard/internal/proxy/peer"
)

const maxSnapshot = 8 << 20 // bytes

// Snapshot is a file with the service accounts of this machine's pods, for machines where the kubelet is not to be asked:
//
//	{"pods": [{"uid": "…", "namespace": "…", "name": "…", "serviceAccount": "…"}]}
//
// An account that can write it says who callers are, so that it is worth nothing if others than administrators can. It is read when it has changed.
type Snapshot struct {
	path string

	mu    sync.Mutex // guards the fields below
	read  os.FileInfo
	known pods
}

var _ peer.Accounts = (*Snapshot)(nil)

// NewSnapshot reads nothing yet: the file may come later.
func NewSnapshot(path string) *Snapshot { return &Snapshot{path: path} }

// ServiceAccount implements peer.Accounts. A file that does not hold is worth nothing, also for pods that were in it before.
func (s *Snapshot) ServiceAccount(_ context.Context, pod caller.Pod) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	info, err := os.Stat(s.path)
	if err != nil {
		return "", err
	}
	if !s.isRead(info) {
		s.read, s.known = nil, nil
		known, err := load(s.path)
		if err != nil {
			return "", fmt.Errorf("snapshot of pods: %w", err)
		}
		s.read, s.known = info, known
	}
	return s.known.find(pod), nil
}

func (s *Snapshot) isRead(now os.FileInfo) bool {
	return s.read != nil && os.SameFile(s.read, now) && s.read.Size() == now.Size() && s.read.ModTime().Equal(now.ModTime())
}

func load(path string) (pods, error) {
	content, err := filetrust.Read(path, maxSnapshot)
	if err != nil {
		return nil, err
	}
	var file struct {
		Pods []struct {
			UID            string `json:"uid"`
			Namespace      string `json:"namespace"`
			Name           string `json:"name"`
			ServiceAccount string `json:"serviceAccount"`
		} `json:"pods"`
	}
	strict, err := json.UnmarshalStrict(content, &file)
	if err := errors.Join(append(strict, err)...); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	listed := make([]caller.Pod, len(file.Pods))
	for i, p := range file.Pods {
		listed[i] = caller.Pod{Namespace: p.Namespace, Name: p.Name, UID: p.UID, ServiceAccount: p.ServiceAccount}
	}
	return collect(listed)
}
