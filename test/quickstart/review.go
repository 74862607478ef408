package main

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"
)

//go:embed testdata/*.yaml
var testdata embed.FS

// apiServer plays the part of the Kubernetes API server: it sends AdmissionReviews.
type apiServer struct {
	client *http.Client
	url    string
	sent   int
}

func readPod(file string) (*corev1.Pod, error) {
	data, err := testdata.ReadFile("testdata/" + file)
	if err != nil {
		return nil, err
	}
	var pod corev1.Pod
	if err := yaml.UnmarshalStrict(data, &pod); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return &pod, nil
}

// author is who creates pods.
const author = "jane"

// create asks whether a pod of a manifest may be created.
func (a *apiServer) create(ctx context.Context, file string) (*admissionv1.AdmissionResponse, error) {
	pod, err := readPod(file)
	if err != nil {
		return nil, err
	}
	return a.review(ctx, pod, nil, "")
}

// debug asks whether an ephemeral container may be added to a running pod.
func (a *apiServer) debug(ctx context.Context, podFile, containerFile string) (*admissionv1.AdmissionResponse, error) {
	before, err := readPod(podFile)
	if err != nil {
		return nil, err
	}
	data, err := testdata.ReadFile("testdata/" + containerFile)
	if err != nil {
		return nil, err
	}
	var container corev1.EphemeralContainer
	if err := yaml.UnmarshalStrict(data, &container); err != nil {
		return nil, fmt.Errorf("%s: %w", containerFile, err)
	}
	after := before.DeepCopy()
	after.Spec.EphemeralContainers = append(after.Spec.EphemeralContainers, container)
	return a.review(ctx, after, before, "ephemeralcontainers")
}

func (a *apiServer) review(ctx context.Context, pod, old *corev1.Pod, subresource string) (*admissionv1.AdmissionResponse, error) {
	a.sent++
	request := &admissionv1.AdmissionRequest{
		UID:         types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012d", a.sent)),
		Kind:        metav1.GroupVersionKind{Version: "v1", Kind: "Pod"},
		Resource:    metav1.GroupVersionResource{Version: "v1", Resource: "pods"},
		SubResource: subresource,
		Name:        pod.Name,
		Namespace:   pod.Namespace,
		Operation:   admissionv1.Create,
		UserInfo:    authenticationv1.UserInfo{Username: author, Groups: []string{"system:authenticated"}},
	}
	var err error
	if request.Object.Raw, err = json.Marshal(pod); err != nil {
		return nil, err
	}
	if old != nil {
		request.Operation = admissionv1.Update
		if request.OldObject.Raw, err = json.Marshal(old); err != nil {
			return nil, err
		}
	}
	request.Options = runtime.RawExtension{Raw: []byte(`{"apiVersion":"meta.k8s.io/v1","kind":"CreateOptions"}`)}
	body, err := json.Marshal(admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
		Request:  request,
	})
	if err != nil {
		return nil, err
	}
	status, answer, err := a.post(ctx, body)
	if err != nil {
		return nil, err
	}
	var review admissionv1.AdmissionReview
	if err := json.Unmarshal(answer, &review); err != nil || review.Response == nil {
		return nil, fmt.Errorf("HTTP %d, and no AdmissionReview with a response: %.200q", status, answer)
	}
	if status != http.StatusOK || review.Response.UID != request.UID {
		return nil, fmt.Errorf("HTTP %d, uid %q in answer to %q", status, review.Response.UID, request.UID)
	}
	return review.Response, nil
}

func (a *apiServer) post(ctx context.Context, body []byte) (status int, answer []byte, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, a.url, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := a.client.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close() //nolint:errcheck // only read
	answer, err = io.ReadAll(io.LimitReader(response.Body, 1<<20))
	return response.StatusCode, answer, err
}
