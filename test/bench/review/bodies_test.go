//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"encoding/pem"
	"flag"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pipeguard/pipeguard/test/integration/cluster"
	"github.com/pipeguard/pipeguard/test/pods"
)

var update = flag.Bool("update", false, "have an API server send the bodies of testdata anew; needs the programs of test/tools/build api")

// podsToSend are those of the bodies.
func podsToSend(t *testing.T) map[string]*corev1.Pod {
	t.Helper()
	elsewhere := pods.Driver(t)
	elsewhere.Namespace = "shop"
	out := map[string]*corev1.Pod{plain: pods.Plain(t), driver: pods.Driver(t), refused: elsewhere}
	for _, p := range out {
		p.Name, p.UID, p.ManagedFields, p.OwnerReferences = "pod-to-be-named", "", nil, nil
	}
	return out
}

// The bodies are what an API server sends about the pods that the other benchmarks judge, but for the names and uids of pods and reviews. With -update they are made anew.
func TestBodies(t *testing.T) {
	if *update {
		record(t)
	}
	list, err := samples()
	if err != nil {
		t.Fatal(err)
	}
	for i := range list {
		s := &list[i]
		body, uid := s.next()
		other, otherUID := s.next()
		var review, next admissionv1.AdmissionReview
		var pod, nextPod corev1.Pod
		for _, err := range []error{
			json.Unmarshal([]byte(body), &review), json.Unmarshal([]byte(other), &next),
			json.Unmarshal(review.Request.Object.Raw, &pod), json.Unmarshal(next.Request.Object.Raw, &nextPod),
		} {
			if err != nil {
				t.Fatal(s.name, err)
			}
		}
		file, _, _ := strings.Cut(s.name, ",")
		want := podsToSend(t)[file]
		isNew := pod.Spec.Containers[0].Image != nextPod.Spec.Containers[0].Image
		switch {
		case string(review.Request.UID) != uid || string(next.Request.UID) != otherUID || uid == otherUID:
			t.Errorf("%s: uids %s and %s", s.name, review.Request.UID, next.Request.UID)
		case pod.Name == nextPod.Name || pod.Name != review.Request.Name || pod.Namespace != want.Namespace || review.Request.Namespace != want.Namespace:
			t.Errorf("%s: pods %s/%s and %s", s.name, pod.Namespace, pod.Name, nextPod.Name)
		case isNew != s.isNew:
			t.Errorf("%s: images %s and %s", s.name, pod.Spec.Containers[0].Image, nextPod.Spec.Containers[0].Image)
		case len(pod.Spec.Volumes) < len(want.Spec.Volumes) || len(pod.ManagedFields) == 0:
			t.Errorf("%s is not what an API server sends about its pod: %d volumes", s.name, len(pod.Spec.Volumes))
		}
	}
}

// record has an API server ask about the pods.
func record(t *testing.T) {
	tools, err := cluster.FindTools("kube-apiserver", "etcd", "kubectl")
	if err != nil {
		t.Fatal(err)
	}
	api, err := cluster.StartAPIServer(t.Context(), cluster.APIServerOptions{Tools: tools, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := api.Stop(); err != nil {
			t.Error(err)
		}
	}()
	var mu sync.Mutex
	seen := map[string][]byte{} // by namespace and images
	webhook := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		var review admissionv1.AdmissionReview
		var pod corev1.Pod
		if json.Unmarshal(body, &review) != nil || json.Unmarshal(review.Request.Object.Raw, &pod) != nil {
			http.Error(w, "no review", http.StatusBadRequest)
			return
		}
		mu.Lock()
		seen[pod.Namespace+" "+pod.Spec.Containers[0].Name] = body
		mu.Unlock()
		review.Response, review.Request = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: false, Result: &metav1.Status{Message: "recorded"}}, nil
		_ = json.NewEncoder(w).Encode(review) // the API server says if it got nothing
	}))
	defer webhook.Close()
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: webhook.Certificate().Raw})
	if err := api.Register(t.Context(), configuration(webhook.URL, authority), func(err error) bool { return err != nil && strings.Contains(err.Error(), "recorded") }); err != nil {
		t.Fatal(err)
	}
	config := rest.CopyConfig(api.Config)
	config.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:kube-system:daemon-set-controller",
		Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:kube-system", "system:authenticated"},
	}
	controller, err := cluster.NewClient(config)
	if err != nil {
		t.Fatal(err)
	}
	for name, pod := range podsToSend(t) {
		if err := api.EnsureNamespace(t.Context(), pod.Namespace, pod.Spec.ServiceAccountName); err != nil {
			t.Fatal(err)
		}
		if err := controller.Create(t.Context(), pod, client.FieldOwner("kube-controller-manager")); err == nil || !strings.Contains(err.Error(), "recorded") {
			t.Fatal(name, err)
		}
		mu.Lock()
		body := seen[pod.Namespace+" "+pod.Spec.Containers[0].Name]
		mu.Unlock()
		var review admissionv1.AdmissionReview
		if err := json.Unmarshal(body, &review); err != nil {
			t.Fatal(name, err)
		}
		body = bytes.ReplaceAll(body, []byte(review.Request.UID), []byte(uidMark))
		body = bytes.ReplaceAll(body, []byte("pod-to-be-named"), []byte(nameMark))
		if err := os.WriteFile(filepath.Join("testdata", name+".json"), body, 0o644); err != nil { //nolint:gosec // test data
			t.Fatal(err)
		}
	}
}

func configuration(url string, authority []byte) *admissionregistrationv1.ValidatingWebhookConfiguration {
	return &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "records"},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: "records.example.com", AdmissionReviewVersions: []string{"v1"}, SideEffects: new(admissionregistrationv1.SideEffectClassNone),
			ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: &url, CABundle: authority},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
			}},
		}},
	}
}
