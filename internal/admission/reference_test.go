package admission

import (
	"bytes"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	kjson "k8s.io/apimachinery/pkg/util/json"

	"github.com/pipeguard/pipeguard/internal/pipepath"
)

// reference extracts from a Pod that Kubernetes' own decoder has read. It is written for plainness, and the real
// extraction is held to it.
func reference(guard *pipepath.Guard, raw []byte) (extraction, map[string]string, error) {
	var pod corev1.Pod
	if err := kjson.Unmarshal(raw, &pod); err != nil {
		return extraction{}, nil, err
	}
	var e extraction
	mounted := map[int]bool{}
	podHostProcess := pod.Spec.SecurityContext != nil && hostProcessOf(pod.Spec.SecurityContext.WindowsOptions, false)
	add := func(kind, field string, name, image string, sc *corev1.SecurityContext, mounts []corev1.VolumeMount) {
		c := Container{Name: name, Type: kind, Image: image, Field: field, HostProcess: podHostProcess}
		if sc != nil {
			c.Privileged = sc.Privileged != nil && *sc.Privileged
			c.HostProcess = hostProcessOf(sc.WindowsOptions, podHostProcess)
		}
		e.containers = append(e.containers, c)
		for j, m := range mounts {
			for i, v := range pod.Spec.Volumes {
				if v.HostPath == nil || v.Name != m.Name {
					continue
				}
				mounted[i] = true
				subPath := m.SubPath + m.SubPathExpr // one of them is empty
				verdict := guard.JudgeMount(v.HostPath.Path, subPath)
				if !belongs(verdict) {
					continue
				}
				e.mounts = append(e.mounts, Mount{
					Container: name, ContainerType: kind, Image: image, Privileged: c.Privileged, HostProcess: c.HostProcess,
					Volume: v.Name, SubPath: subPath, Target: targetOf(verdict, v.HostPath.Path),
					Field:       fmt.Sprintf("%s.volumeMounts[%d]", field, j),
					VolumeField: fmt.Sprintf("spec.volumes[%d].hostPath.path", i),
				})
			}
		}
	}
	for i, c := range pod.Spec.InitContainers {
		add(typeInit, fmt.Sprintf("spec.initContainers[%d]", i), c.Name, c.Image, c.SecurityContext, c.VolumeMounts)
	}
	for i, c := range pod.Spec.Containers {
		add(typeContainer, fmt.Sprintf("spec.containers[%d]", i), c.Name, c.Image, c.SecurityContext, c.VolumeMounts)
	}
	for i, c := range pod.Spec.EphemeralContainers {
		add(typeEphemeral, fmt.Sprintf("spec.ephemeralContainers[%d]", i), c.Name, c.Image, c.SecurityContext, c.VolumeMounts)
	}
	for i, v := range pod.Spec.Volumes {
		if v.HostPath == nil || mounted[i] {
			continue
		}
		if verdict := guard.Judge(v.HostPath.Path); belongs(verdict) {
			e.unmounted = append(e.unmounted, Volume{Volume: v.Name, Target: targetOf(verdict, v.HostPath.Path),
				Field: fmt.Sprintf("spec.volumes[%d].hostPath.path", i)})
		}
	}
	return e, pod.Annotations, nil
}

func hostProcessOf(o *corev1.WindowsSecurityContextOptions, inherited bool) bool {
	if o == nil || o.HostProcess == nil {
		return inherited
	}
	return *o.HostProcess
}

func belongs(v pipepath.Verdict) bool { return v.Match || (v.Kind != "path" && v.Kind != "drive") }

func targetOf(v pipepath.Verdict, path string) Target {
	return Target{Path: path, Canonical: v.Canonical, Kind: string(v.Kind), Pipe: v.Pipe, Guarded: v.Match, NeverAllowed: v.NeverAllowed}
}

// matters is isRelevant in other words.
func matters(e *extraction, annotations map[string]string) bool {
	for _, c := range e.containers {
		if c.HostProcess {
			return true
		}
	}
	for k := range annotations {
		if strings.Contains(strings.ToLower(k), "microsoft.com") {
			return true
		}
	}
	return len(e.mounts)+len(e.unmounted) > 0
}

// holdsGuarded says whether raw, as Kubernetes reads it, holds a guarded pipe.
func holdsGuarded(guard *pipepath.Guard, raw []byte) bool {
	e, _, err := reference(guard, bytes.TrimSpace(raw))
	if err != nil {
		return false
	}
	for _, m := range e.mounts {
		if m.Guarded {
			return true
		}
	}
	for _, v := range e.unmounted {
		if v.Guarded {
			return true
		}
	}
	return false
}
