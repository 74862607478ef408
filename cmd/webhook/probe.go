package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"
	admissionv1 "k8s.io/api/admission/v1"

	"github.com/pipeguard/pipeguard/internal/httpsclient"
)

// probeTimeout bounds one question, the connection included.
const probeTimeout = 10 * time.Second

// maxProbeAnswer is far more than an answer has.
const maxProbeAnswer = 1 << 20

// newProbe is the command that asks a webhook from outside, as the API server does.
func newProbe() *cobra.Command {
	var url, caFile string
	cmd := &cobra.Command{
		Use:   "probe --url URL --ca-file FILE",
		Short: "Ask a running webhook: a pod with every pipe must be refused, one without any admitted",
		Long: `Sends two reviews over TLS, as the API server would: a pod that mounts the directory of all pipes, which every policy
refuses, and one that mounts nothing. Nothing is created. The webhook records the first as a refusal of the
user "pipeguard-probe".

Exit codes: 0 both answers are right, 1 one is wrong or there is none, 2 wrong command line.`,
		Example: `  webhook probe --url https://pipeguard-webhook.pipeguard-system.svc/validate --ca-file ca.crt`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if url == "" || caFile == "" {
				return errors.New("--url and --ca-file are needed")
			}
			if err := probe(cmd.Context(), url, caFile, cmd.OutOrStdout()); err != nil {
				return &failure{err}
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&url, "url", "", "`address` of the webhook, with its path")
	cmd.Flags().StringVar(&caFile, "ca-file", "", "`file` with the authorities of its certificate")
	return cmd
}

// probe asks both questions and says on w what the answers were.
func probe(ctx context.Context, url, caFile string, w io.Writer) error {
	client, err := httpsclient.New(httpsclient.Options{CAFile: caFile, Timeout: probeTimeout})
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	for _, q := range []struct {
		name, path string
		admitted   bool
	}{
		{"a pod that mounts the directory of all pipes", `\\.\pipe\`, false},
		{"a pod that mounts nothing", "", true},
	} {
		answer, err := ask(ctx, client, url, q.path)
		if err != nil {
			return fmt.Errorf("%s: %w", q.name, err)
		}
		if answer.Allowed != q.admitted {
			return fmt.Errorf("%s: admitted is %t, want %t", q.name, answer.Allowed, q.admitted)
		}
		verdict := "admitted"
		if !answer.Allowed {
			message, _, _ := strings.Cut(answer.Result.Message, "\n")
			verdict = "refused: " + message
		}
		if _, err := fmt.Fprintf(w, "%s: %s\n", q.name, verdict); err != nil {
			return err
		}
	}
	return nil
}

// ask sends the review of a pod that mounts path, or nothing if path is empty.
func ask(ctx context.Context, client *http.Client, url, path string) (*admissionv1.AdmissionResponse, error) {
	container := map[string]any{"name": "probe", "image": "example.com/probe"}
	spec := map[string]any{"containers": []any{container}}
	if path != "" {
		container["volumeMounts"] = []any{map[string]any{"name": "pipes", "mountPath": `\\.\pipe\probe`}}
		spec["volumes"] = []any{map[string]any{"name": "pipes", "hostPath": map[string]any{"path": path}}}
	}
	body, err := json.Marshal(map[string]any{
		"apiVersion": "admission.k8s.io/v1",
		"kind":       "AdmissionReview",
		"request": map[string]any{
			"uid":       "pipeguard-probe",
			"operation": "CREATE",
			"kind":      map[string]any{"group": "", "version": "v1", "kind": "Pod"},
			"namespace": "default",
			"userInfo":  map[string]any{"username": "pipeguard-probe"},
			"object":    map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "pipeguard-probe"}, "spec": spec},
		},
	})
	if err != nil {
		return nil, fmt.Errorf("encode the review: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("make the request: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	answer, err := httpsclient.Do(client, req, maxProbeAnswer)
	if err != nil {
		return nil, err
	}
	if answer.Code != http.StatusOK {
		return nil, fmt.Errorf("answered with status %d: %.200q", answer.Code, answer.Body)
	}
	var review admissionv1.AdmissionReview
	if err := json.Unmarshal(answer.Body, &review); err != nil {
		return nil, fmt.Errorf("decode the answer: %w", err)
	}
	if review.Response == nil || review.Response.UID != "pipeguard-probe" || (!review.Response.Allowed && review.Response.Result == nil) {
		return nil, errors.New("the answer is not to this question")
	}
	return review.Response, nil
}
