package apiserver

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pipeguard/pipeguard/internal/admission"
)

func refuses(kind, text string) string {
	if err := Refuses(metav1.GroupVersionKind{Version: "v1", Kind: kind}, []byte(text)); err != nil {
		return err.Error()
	}
	return ""
}

func TestAMisspeltFieldIsRefusedWithTheOneThatWasMeant(t *testing.T) {
	for text, want := range map[string]string{
		`{"spec":{"volumes":[{"name":"v","hostpath":{"path":"x"}}]}}`:                                      `unknown field "spec.volumes[0].hostpath"; did you mean "hostPath"?`,
		`{"spec":{"volumes":[{"name":"v","hostPaths":{"path":"x"}}]}}`:                                     `did you mean "hostPath"?`,
		`{"spec":{"volumes":[{"name":"v","hostPath":{"Path":"x"}}]}}`:                                      `did you mean "path"?`,
		`{"spec":{"containers":[{"name":"c","securityContext":{"windowsOptions":{"hostprocess":true}}}]}}`: `did you mean "hostProcess"?`,
		`{"spec":{"initcontainers":[]}}`:                                                                   `did you mean "initContainers"?`,
		`{"metadata":{"annotation":{}}}`:                                                                   `did you mean "annotations"?`,
		`{"Spec":{}}`:                                                                                      `did you mean "spec"?`,
		`{"spec":{"containers":[{"name":"c","volumeMount":[]},{"name":"d","volumesMounts":[]}]}}`:          `"spec.containers[1].volumesMounts"; did you mean "volumeMounts"?`,
		`{"spec":{"nothingLikeIt":1}}`:                                                                     `unknown field "spec.nothingLikeIt"`,
		`{"spec":{"containers":{}}}`:                                                                       "cannot unmarshal",
	} {
		if got := refuses("Pod", text); !strings.HasPrefix(got, "the API server refuses this object: ") || !strings.Contains(got, want) {
			t.Errorf("%s: %q does not say %q", text, got, want)
		}
	}
	if got := refuses("Pod", `{"spec":{"nothingLikeIt":1}}`); strings.Contains(got, "mean") {
		t.Error(got)
	}
}

func TestAPathThatLeadsUpwardsIsRefused(t *testing.T) {
	pod := func(volume, mount string) string {
		return `{"spec":{"volumes":[{"name":"v","hostPath":{"path":"` + volume + `"}}],"containers":[{"name":"c","volumeMounts":[{"name":"v","mountPath":"x",` + mount + `}]}]}}`
	}
	for text, want := range map[string]string{
		pod("/a/../b", `"subPath":""`):         "spec.volumes[0].hostPath.path: must not contain '..'",
		pod("/a", `"subPath":"../b"`):          "spec.containers[0].volumeMounts[0].subPath: must not contain '..'",
		pod("/a", `"subPath":"a/.."`):          "subPath: must not contain '..'",
		pod("/a", `"subPathExpr":"$(A)/../b"`): "subPathExpr: must not contain '..'",
		pod("/a", `"subPath":"/b"`):            "subPath: must be a relative path",
	} {
		if got := refuses("Pod", text); !strings.Contains(got, want) {
			t.Errorf("%s: %q does not say %q", text, got, want)
		}
	}
	for _, text := range []string{pod("/a", `"subPath":"a..b/c"`), pod(`C:\\a\\..\\b`, `"subPath":"a\\..\\b"`), pod("/a", `"subPath":"..."`)} {
		if got := refuses("Pod", text); got != "" {
			t.Errorf("%s: %s", text, got)
		}
	}
	for _, at := range []string{"hostPath", "local"} {
		if got := refuses("PersistentVolume", `{"spec":{"`+at+`":{"path":"/a/.."}}}`); !strings.Contains(got, "spec."+at+".path") {
			t.Errorf("%s: %q", at, got)
		}
	}
}

func TestEveryKindThatIsJudgedIsKnown(t *testing.T) {
	for _, kind := range admission.Kinds() {
		if got := refuses(kind.Kind, `{"sepc":{}}`); !strings.Contains(got, "sepc") {
			t.Errorf("%s: %q", kind.Kind, got)
		}
		if got := refuses(kind.Kind, `{}`); got != "" {
			t.Errorf("%s: %q", kind.Kind, got)
		}
	}
}
