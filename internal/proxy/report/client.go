package report

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/pipeguard/pipeguard/internal/httpsclient"
)

const (
	collection = "/apis/pipeguard.dev/v1alpha1/guardednodes"
	apiVersion = "pipeguard.dev/v1alpha1"
	kind       = "GuardedNode"
	// manager is whom the API server notes for what is written.
	manager = "pipeguard-node"

	writeTimeout = 15 * time.Second
	// tries bounds the attempts to write an object that others write to at the same time.
	tries = 4
)

// object is a GuardedNode. Its metadata is kept as it was read: labels and owners are others'.
type object struct {
	APIVersion string          `json:"apiVersion"`
	Kind       string          `json:"kind"`
	Metadata   json.RawMessage `json:"metadata"`
	node
}

// client writes one GuardedNode. It speaks plain HTTPS, so that the program carries no client that could do more. It is used
// by one goroutine at a time.
type client struct {
	server, dir, name string
	metadata          json.RawMessage // of the last answer; nil if nothing is known
}

// write stores a report, whatever the object holds now.
func (c *client) write(ctx context.Context, n node) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	// Reports are rare enough to make a connection for each.
	connection, err := httpsclient.New(httpsclient.Options{CAFile: c.dir + "/ca.crt", TokenFile: c.dir + "/token"})
	if err != nil {
		return err
	}
	defer connection.CloseIdleConnections()
	own := collection + "/" + url.PathEscape(c.name)
	for range tries {
		method, path := http.MethodPut, own
		if c.metadata == nil {
			code, err := c.do(ctx, connection, http.MethodGet, own, nil)
			if err != nil && code != http.StatusNotFound {
				return err
			}
			if code == http.StatusNotFound {
				method, path = http.MethodPost, collection
			}
		}
		code, err := c.do(ctx, connection, method, path, &n)
		switch {
		case err == nil:
			return nil
		case code == http.StatusNotFound && method == http.MethodPost:
			return fmt.Errorf("the cluster has no GuardedNodes: is its CustomResourceDefinition installed? %w", err)
		case code == http.StatusNotFound, code == http.StatusConflict: // it went, or another client was faster
			c.metadata = nil
			continue
		}
		return err
	}
	return errors.New("others write to it without end")
}

// do sends one request and keeps the metadata of the answer. The error names the API server's reason.
func (c *client) do(ctx context.Context, connection *http.Client, method, path string, n *node) (code int, err error) {
	var body []byte
	if n != nil {
		metadata := c.metadata
		if metadata == nil {
			if metadata, err = json.Marshal(map[string]string{"name": c.name}); err != nil {
				return 0, err
			}
		}
		if body, err = json.Marshal(object{apiVersion, kind, metadata, *n}); err != nil {
			return 0, err
		}
		path += "?fieldManager=" + manager
	}
	request, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(c.server, "/")+path, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	request.Header.Set("Accept", "application/json")
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", manager)
	response, err := httpsclient.Do(connection, request, maxAnswer)
	if err != nil {
		return 0, err
	}
	var answer struct {
		Kind     string          `json:"kind"`
		Message  string          `json:"message"` // of a Status
		Metadata json.RawMessage `json:"metadata"`
	}
	fault := json.Unmarshal(response.Body, &answer)
	if code = response.Code; code != http.StatusOK && code != http.StatusCreated {
		return code, fmt.Errorf("%s GuardedNode %s: %s: %s", method, c.name, response.Status, clip(answer.Message, maxMessage))
	}
	if fault != nil || answer.Kind != kind || len(answer.Metadata) == 0 {
		return 0, fmt.Errorf("%s GuardedNode %s: the answer is no %s", method, c.name, kind)
	}
	c.metadata = answer.Metadata
	return code, nil
}
