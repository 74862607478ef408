package admission

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "k8s.io/apimachinery/pkg/util/json"

	"github.com/pipeguard/pipeguard/internal/core/pipepath"
)

// held is what Kubernetes' own decoder finds in an object: a pod or a template with its path, or a volume.
type held struct {
	meta   metav1.ObjectMeta
	spec   corev1.PodSpec
	at     string // of the pod or template in the object; empty for a Pod
	volume *corev1.PersistentVolume
}

// decodeHeld reads an object with the types of Kubernetes.
func decodeHeld(kind string, raw []byte) (h held, err error) {
	template := func(t *corev1.PodTemplateSpec, at string) {
		if t != nil {
			h.meta, h.spec = t.ObjectMeta, t.Spec
		}
		h.at = at + "."
	}
	switch kind {
	case "Pod":
		var o corev1.Pod
		err = kjson.Unmarshal(raw, &o)
		h.meta, h.spec = o.ObjectMeta, o.Spec
	case "PodTemplate":
		var o corev1.PodTemplate
		err = kjson.Unmarshal(raw, &o)
		template(&o.Template, "template")
	case "ReplicationController":
		var o corev1.ReplicationController
		err = kjson.Unmarshal(raw, &o)
		template(o.Spec.Template, "spec.template")
	case "Deployment":
		var o appsv1.Deployment
		err = kjson.Unmarshal(raw, &o)
		template(&o.Spec.Template, "spec.template")
	case "DaemonSet":
		var o appsv1.DaemonSet
		err = kjson.Unmarshal(raw, &o)
		template(&o.Spec.Template, "spec.template")
	case "StatefulSet":
		var o appsv1.StatefulSet
		err = kjson.Unmarshal(raw, &o)
		template(&o.Spec.Template, "spec.template")
	case "ReplicaSet":
		var o appsv1.ReplicaSet
		err = kjson.Unmarshal(raw, &o)
		template(&o.Spec.Template, "spec.template")
	case "Job":
		var o batchv1.Job
		err = kjson.Unmarshal(raw, &o)
		template(&o.Spec.Template, "spec.template")
	case "CronJob":
		var o batchv1.CronJob
		err = kjson.Unmarshal(raw, &o)
		template(&o.Spec.JobTemplate.Spec.Template, "spec.jobTemplate.spec.template")
	case "PersistentVolume":
		h.volume = &corev1.PersistentVolume{}
		err = kjson.Unmarshal(raw, h.volume)
	default:
		err = fmt.Errorf("kind %s", kind)
	}
	return h, err
}

// reference extracts from an object that Kubernetes' own decoder has read. It is written for plainness, and the real
// extraction is held to it.
func reference(scope *Scope, kind string, raw []byte) (extraction, map[string]string, error) {
	h, err := decodeHeld(kind, raw)
	if err != nil {
		return extraction{}, nil, err
	}
	var e extraction
	if h.volume != nil {
		e.persistent = referenceVolume(scope, h.volume)
		return e, nil, nil
	}
	spec := h.spec
	if isLinuxSpec(&spec) {
		spec = referenceOnLinux(spec)
		h.meta.Annotations = maps.Clone(h.meta.Annotations)
		maps.DeleteFunc(h.meta.Annotations, func(key, _ string) bool { return strings.Contains(strings.ToLower(key), "microsoft.com") })
	}
	mounted := map[int]bool{}
	podHostProcess := spec.SecurityContext != nil && hostProcessOf(spec.SecurityContext.WindowsOptions, false)
	add := func(kind, field string, name, image string, sc *corev1.SecurityContext, mounts []corev1.VolumeMount) {
		field = h.at + field
		c := Container{Name: name, Type: kind, Image: image, Field: field, HostProcess: podHostProcess}
		if sc != nil {
			c.Privileged = sc.Privileged != nil && *sc.Privileged
			c.HostProcess = hostProcessOf(sc.WindowsOptions, podHostProcess)
		}
		if spec.SecurityContext != nil {
			c.RunAsUserName = runAsUserNameOf(spec.SecurityContext.WindowsOptions, "")
		}
		if sc != nil {
			c.RunAsUserName = runAsUserNameOf(sc.WindowsOptions, c.RunAsUserName)
		}
		e.containers = append(e.containers, c)
		for j, m := range mounts {
			for i, v := range spec.Volumes {
				if v.HostPath == nil || v.Name != m.Name {
					continue
				}
				mounted[i] = true
				subPath := m.SubPath + m.SubPathExpr // one of them is empty
				target, ok := referenceTarget(scope, v.HostPath.Path, subPath)
				if strings.Contains(m.SubPathExpr, "$(") {
					joined := scope.guard.JudgeMountExpr(v.HostPath.Path, subPath)
					power, host := scope.powers.JudgeMountExpr(v.HostPath.Path, subPath), scope.hostPaths.JudgeMountExpr(v.HostPath.Path, subPath)
					target, ok = describedTarget(scope, v.HostPath.Path, joined, power, host)
				}
				if !ok {
					continue
				}
				e.mounts = append(e.mounts, Mount{
					Container: name, ContainerType: kind, Image: image, Privileged: c.Privileged, HostProcess: c.HostProcess,
					Volume: v.Name, SubPath: subPath, Target: target,
					Field:       fmt.Sprintf("%s.volumeMounts[%d]", field, j),
					VolumeField: fmt.Sprintf("%sspec.volumes[%d].hostPath.path", h.at, i), runAsUserName: c.RunAsUserName,
				})
			}
		}
	}
	for i, c := range spec.InitContainers {
		add(typeInit, fmt.Sprintf("spec.initContainers[%d]", i), c.Name, c.Image, c.SecurityContext, c.VolumeMounts)
	}
	for i, c := range spec.Containers {
		add(typeContainer, fmt.Sprintf("spec.containers[%d]", i), c.Name, c.Image, c.SecurityContext, c.VolumeMounts)
	}
	for i, c := range spec.EphemeralContainers {
		add(typeEphemeral, fmt.Sprintf("spec.ephemeralContainers[%d]", i), c.Name, c.Image, c.SecurityContext, c.VolumeMounts)
	}
	for i, v := range spec.Volumes {
		if v.HostPath == nil || mounted[i] {
			continue
		}
		if target, ok := referenceTarget(scope, v.HostPath.Path, ""); ok {
			e.unmounted = append(e.unmounted, Volume{Volume: v.Name, Target: target,
				Field: fmt.Sprintf("%sspec.volumes[%d].hostPath.path", h.at, i)})
		}
	}
	return e, h.meta.Annotations, nil
}

func referenceVolume(scope *Scope, v *corev1.PersistentVolume) (out []PersistentVolume) {
	claim := Claim{}
	if ref := v.Spec.ClaimRef; ref != nil {
		claim = Claim{Namespace: ref.Namespace, Name: ref.Name}
	}
	add := func(kind, path string) {
		target, ok := describedTarget(scope, path, scope.guard.JudgeAnyMount(path), scope.powers.JudgeAnyMount(path), scope.hostPaths.JudgeAnyMount(path))
		if ok {
			out = append(out, PersistentVolume{Type: kind, Target: target, Field: "spec." + kind + ".path", Claim: claim})
		}
	}
	if v.Spec.HostPath != nil {
		add("hostPath", v.Spec.HostPath.Path)
	}
	if v.Spec.Local != nil {
		add("local", v.Spec.Local.Path)
	}
	return out
}

func runAsUserNameOf(o *corev1.WindowsSecurityContextOptions, inherited string) string {
	if o == nil || o.RunAsUserName == nil {
		return inherited
	}
	return *o.RunAsUserName
}

func hostProcessOf(o *corev1.WindowsSecurityContextOptions, inherited bool) bool {
	if o == nil || o.HostProcess == nil {
		return inherited
	}
	return *o.HostProcess
}

func referenceTarget(scope *Scope, path, subPath string) (Target, bool) {
	v := scope.guard.JudgeMount(path, subPath)
	if v.Match && subPath != "" {
		if joined := scope.guard.Judge(path + `\` + subPath); joined.NeverAllowed && !v.NeverAllowed {
			v = joined
		}
	}
	return describedTarget(scope, path, v, scope.powers.JudgeMount(path, subPath), scope.hostPaths.JudgeMount(path, subPath))
}

func describedTarget(scope *Scope, path string, v pipepath.Verdict, power, host pipepath.Reach) (Target, bool) {
	t := Target{
		Path: path, Canonical: v.Canonical, Kind: string(v.Kind), Pipe: v.Pipe, Guarded: v.Match, NeverAllowed: v.NeverAllowed,
		EqualPower: string(power.Power), Place: string(host.Place), HostPath: host.Directory, Policies: []string{},
	}
	for name, p := range scope.policies {
		guard, err := pipepath.NewGuard(p.Pipes...)
		if err == nil && v.Pipe != "" && guard.Judge(`\\.\pipe\`+v.Pipe).Match {
			t.Policies = append(t.Policies, name)
		}
	}
	slices.Sort(t.Policies)
	return t, v.Match || t.EqualPower != "" || t.Place != "" || (v.Kind != "path" && v.Kind != "drive")
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
	return len(e.mounts)+len(e.unmounted)+len(e.persistent) > 0
}

// holdsGuarded says whether raw, as Kubernetes reads it, holds a guarded pipe.
func holdsGuarded(scope *Scope, kind string, raw []byte) bool {
	e, _, err := reference(scope, kind, bytes.TrimSpace(raw))
	if err != nil {
		return false
	}
	return slices.ContainsFunc(e.mounts, func(m Mount) bool { return m.Guarded }) ||
		slices.ContainsFunc(e.unmounted, func(v Volume) bool { return v.Guarded }) ||
		slices.ContainsFunc(e.persistent, func(v PersistentVolume) bool { return v.Guarded })
}

// isLinuxSpec is placement.isLinux in other words.
func isLinuxSpec(spec *corev1.PodSpec) bool {
	if spec.OS != nil && spec.OS.Name == corev1.Linux || spec.NodeSelector[corev1.LabelOSStable] == "linux" {
		return true
	}
	if spec.Affinity == nil || spec.Affinity.NodeAffinity == nil || spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return false
	}
	terms := spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	others := slices.DeleteFunc(slices.Clone(terms), func(term corev1.NodeSelectorTerm) bool {
		return len(term.MatchExpressions) <= 32 && slices.ContainsFunc(term.MatchExpressions, func(e corev1.NodeSelectorRequirement) bool {
			isIn := e.Operator == corev1.NodeSelectorOpIn && len(e.Values) == 1 && e.Values[0] == "linux"
			isNotIn := e.Operator == corev1.NodeSelectorOpNotIn && slices.Contains(e.Values, "windows")
			return e.Key == corev1.LabelOSStable && len(e.Values) <= 32 && (isIn || isNotIn)
		})
	})
	return len(terms) > 0 && len(terms) <= 32 && len(others) == 0
}

// referenceOnLinux is a pod without anything of Windows.
func referenceOnLinux(spec corev1.PodSpec) corev1.PodSpec {
	spec = *spec.DeepCopy()
	spec.Volumes = nil
	if spec.SecurityContext != nil {
		spec.SecurityContext.WindowsOptions = nil
	}
	without := func(sc *corev1.SecurityContext) {
		if sc != nil {
			sc.WindowsOptions = nil
		}
	}
	for i := range spec.InitContainers {
		without(spec.InitContainers[i].SecurityContext)
	}
	for i := range spec.Containers {
		without(spec.Containers[i].SecurityContext)
	}
	for i := range spec.EphemeralContainers {
		without(spec.EphemeralContainers[i].SecurityContext)
	}
	return spec
}
