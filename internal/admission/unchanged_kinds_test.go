package admission

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestAnUpdateOfATemplateThatLeavesTheAccessAsItWasPasses(t *testing.T) {
	r := newReviewer(t, DefaultParameters())
	for _, kind := range holders() {
		old := asKind(t, kind, admittedPod())
		for name, change := range map[string]func(*corev1.Pod){
			"the last finalizer is removed":        func(p *corev1.Pod) { p.Finalizers = nil },
			"a label of the pods":                  func(p *corev1.Pod) { p.Labels = map[string]string{"a": "b"} },
			"an annotation as of a rollout":        func(p *corev1.Pod) { p.Annotations = map[string]string{"kubectl.kubernetes.io/restartedAt": "now"} },
			"an environment variable of a Linux 1": func(p *corev1.Pod) { p.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "a"}} },
		} {
			res := r.Review(t.Context(), requestFor(t, asKind(t, kind, with(admittedPod(), change)), old))
			if !res.Allowed || !res.Unchanged {
				t.Errorf("%s of a %s: allowed %t, unchanged %t", name, kind.Kind, res.Allowed, res.Unchanged)
			}
		}
		for name, change := range map[string]func(*corev1.Pod){
			"another image":           func(p *corev1.Pod) { p.Spec.Containers[0].Image = "evil" },
			"another guarded pipe":    func(p *corev1.Pod) { p.Spec.Volumes[0].HostPath.Path = `\\.\pipe\csi-proxy-disk-v1` },
			"one more container":      func(p *corev1.Pod) { p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "new"}) },
			"another service account": func(p *corev1.Pod) { p.Spec.ServiceAccountName = "new" },
			"an annotation of a runtime": func(p *corev1.Pod) {
				p.Annotations = map[string]string{"microsoft.com/hostprocess-container": "true"}
			},
			"another object": func(p *corev1.Pod) { p.UID = "other" },
		} {
			res := r.Review(t.Context(), requestFor(t, asKind(t, kind, with(admittedPod(), change)), old))
			if res.Allowed || res.Unchanged {
				t.Errorf("%s of a %s: allowed %t, unchanged %t", name, kind.Kind, res.Allowed, res.Unchanged)
			}
		}
	}
}

func TestAnUpdateIsHeldAgainstAnOldObjectOfItsOwnKindOnly(t *testing.T) {
	r := newReviewer(t, DefaultParameters())
	for _, kind := range holders() {
		for _, other := range holders() {
			res := r.Review(t.Context(), requestFor(t, asKind(t, kind, admittedPod()), asKind(t, other, admittedPod())))
			if res.Unchanged != (kind == other) {
				t.Errorf("a %s that was a %s: unchanged %t", kind.Kind, other.Kind, res.Unchanged)
			}
		}
	}
}

// It is the binding of a claim that gives access to a volume.
func TestAnUpdateOfAPersistentVolumePassesUnlessPathOrClaimChange(t *testing.T) {
	r := newReviewer(t, DefaultParameters())
	bound := func(namespace, name, uid string) func(*corev1.PersistentVolume) {
		return func(v *corev1.PersistentVolume) {
			v.Spec.ClaimRef = &corev1.ObjectReference{Kind: "PersistentVolumeClaim", Namespace: namespace, Name: name, UID: "claim-uid"}
			if uid == "" {
				v.Spec.ClaimRef.UID = ""
			}
		}
	}
	volume := func(changes ...func(*corev1.PersistentVolume)) []byte {
		v := testVolume(csiPipe)
		v.Finalizers = []string{"kubernetes.io/pv-protection"}
		for _, c := range changes {
			c(v)
		}
		return marshal(t, v)
	}
	free, promised, taken := volume(), volume(bound("shop", "data", "")), volume(bound("shop", "data", "u"))
	done := func(v *corev1.PersistentVolume) { v.Finalizers = nil }
	for name, c := range map[string]struct {
		old, now  []byte
		unchanged bool
	}{
		"the finalizer of a free one is removed":  {free, volume(done), true},
		"the finalizer of a bound one is removed": {taken, volume(bound("shop", "data", "u"), done), true},
		"a label":                        {taken, volume(bound("shop", "data", "u"), func(v *corev1.PersistentVolume) { v.Labels = map[string]string{"a": "b"} }), true},
		"a claim is bound":               {free, taken, false},
		"a claim is promised":            {free, promised, false},
		"a promised claim is bound":      {promised, taken, false},
		"another claim":                  {taken, volume(bound("shop", "other", "u")), false},
		"a claim of that name elsewhere": {taken, volume(bound("team-a", "data", "u")), false},
		"the claim is let go":            {taken, free, false},
		"another pipe":                   {taken, volume(bound("shop", "data", "u"), func(v *corev1.PersistentVolume) { v.Spec.HostPath.Path = `\\.\pipe\csi-proxy-disk-v1` }), false},
		"another spelling":               {taken, volume(bound("shop", "data", "u"), func(v *corev1.PersistentVolume) { v.Spec.HostPath.Path = `//./pipe/csi-proxy-filesystem-v1` }), false},
		"another source": {taken, volume(bound("shop", "data", "u"), func(v *corev1.PersistentVolume) {
			v.Spec.Local = &corev1.LocalVolumeSource{Path: csiPipe}
			v.Spec.HostPath = nil
		}), false},
		"another object":                         {taken, volume(bound("shop", "data", "u"), func(v *corev1.PersistentVolume) { v.UID = "other" }), false},
		"an old one with another path beside it": {[]byte(strings.Replace(string(taken), `"spec":{`, `"spec":{"local":{"path":"x"},`, 1)), taken, false},
	} {
		res := r.Review(t.Context(), requestFor(t, c.now, c.old))
		if res.Allowed != c.unchanged || res.Unchanged != c.unchanged {
			t.Errorf("%s: allowed %t, unchanged %t", name, res.Allowed, res.Unchanged)
		}
	}
}
