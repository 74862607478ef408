package token

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"sigs.k8s.io/json"

	"github.com/pipeguard/pipeguard/internal/httpsclient"
)

// maxAnswer is in bytes. A review comes back with what was sent, and the groups and extra fields of a user.
const maxAnswer = 1 << 20

// client asks the API server. It speaks plain HTTPS, so that the proxy carries no client that could do more.
type client struct {
	server string
	http   *http.Client
}

// newClient reads the files once, so that a mistake in them stops the start.
func newClient(api API, timeout time.Duration) (*client, error) {
	asks, err := httpsclient.New(httpsclient.Options{
		CAFile: api.CAFile, CADecides: true, TokenFile: api.TokenFile, CertFile: api.CertFile, KeyFile: api.KeyFile, Timeout: timeout,
	})
	if api.TokenFile != "" {
		_, fault := httpsclient.ReadToken(api.TokenFile)
		err = errors.Join(err, fault)
	}
	if err != nil {
		return nil, fmt.Errorf("api: %w", err)
	}
	return &client{strings.TrimSuffix(api.Server, "/"), asks}, nil
}

// create posts body to path and decodes the object that comes back. Its errors name the status and no content, since
// a review is sent back with the token that is in it.
func (c *client) create(ctx context.Context, path string, body []byte, into any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.server+path, bytes.NewReader(body))
	if err != nil {
		return errors.New("the API server's address is not one")
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json")
	request.Header.Set("User-Agent", "pipeguard-proxy")
	answer, err := httpsclient.Do(c.http, request, maxAnswer)
	if err != nil {
		return fmt.Errorf("ask the API server: %w", err)
	}
	if answer.Code != http.StatusCreated && answer.Code != http.StatusOK {
		return fmt.Errorf("the API server answered %d to POST %s", answer.Code, path)
	}
	if strict, err := json.UnmarshalStrict(answer.Body, into, json.DisallowDuplicateFields); err != nil || len(strict) > 0 {
		return errors.New("the API server's answer is not the JSON that was asked for")
	}
	return nil
}
