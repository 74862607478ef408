package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/pipeguard/pipeguard/internal/httpsclient"
	"github.com/pipeguard/pipeguard/test/harness"
)

// webhook is one that runs, and what its clients need.
type webhook struct {
	*harness.Process
	authority string     // file with the certificate authority that it made
	records   string     // directory
	api       *apiServer // once it is ready
}

// startWebhook starts one with parameters, on ports that are free.
func startWebhook(dir, name, exe string, params []byte) (w *webhook, err error) {
	file := func(end string) string { return filepath.Join(dir, name+end) }
	if err := os.WriteFile(file(".yaml"), params, 0o600); err != nil {
		return nil, err
	}
	w = &webhook{authority: file(".pem"), records: file("-audit")}
	w.Process, err = start(name, exe, "--standalone", "--params", file(".yaml"), "--write-ca", w.authority,
		"--listen-address", "127.0.0.1:0", "--health-probe-bind-address", "127.0.0.1:0", "--metrics-bind-address", "0",
		"--audit-log", w.records)
	return w, err
}

// isReady asks /readyz, and once it says yes makes the client that trusts the webhook's own certificate.
func (w *webhook) isReady(ctx context.Context) error {
	addresses := harness.ServedAddresses(w.Stderr.Bytes())
	if addresses["health"] == "" || addresses["reviews"] == "" {
		return errors.New("the log does not say yet where it serves")
	}
	if _, err := get(ctx, "http://"+addresses["health"]+"/readyz"); err != nil {
		return err
	}
	client, err := httpsclient.New(httpsclient.Options{CAFile: w.authority, Timeout: 10 * time.Second}) // the most that the API server waits by default
	if err != nil {
		return err
	}
	w.api = &apiServer{client: client, url: "https://" + addresses["reviews"] + "/validate"}
	return nil
}

// get returns the text of a page; any status but OK is an error.
func get(ctx context.Context, url string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close() //nolint:errcheck // only read
	text, err := io.ReadAll(io.LimitReader(response.Body, 64<<10))
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", response.Status, strings.TrimSpace(string(text)))
	}
	return text, err
}
