package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// startWebhook starts the webhook with the parameters of the story, on ports that are free.
func (st *stage) startWebhook(dir string) (err error) {
	params, err := testdata.ReadFile("testdata/parameters.yaml")
	if err != nil {
		return err
	}
	file := filepath.Join(dir, "parameters.yaml")
	if err := os.WriteFile(file, params, 0o600); err != nil {
		return err
	}
	st.params, st.authority, st.reviewsFile = string(params), filepath.Join(dir, "ca.pem"), filepath.Join(dir, "reviews.jsonl")
	st.webhook, err = start("webhook", st.programs.webhook, "--standalone", "--params", file, "--write-ca", st.authority,
		"--listen-address", "127.0.0.1:0", "--health-probe-bind-address", "127.0.0.1:0", "--metrics-bind-address", "0",
		"--audit-log", st.reviewsFile)
	return err
}

// webhookIsReady asks /readyz, and once it says yes makes the client that trusts the webhook's own certificate.
func (st *stage) webhookIsReady(ctx context.Context) error {
	addresses := servedAddresses(st.webhook.log.String())
	if addresses["health"] == "" || addresses["reviews"] == "" {
		return errors.New("the log does not say yet where it serves")
	}
	if err := isOK(ctx, "http://"+addresses["health"]+"/readyz"); err != nil {
		return err
	}
	authority, err := os.ReadFile(st.authority)
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(authority) {
		return fmt.Errorf("%s holds no certificate", st.authority)
	}
	st.api = &apiServer{
		client: &http.Client{
			Timeout:   10 * time.Second, // the most that the API server waits by default
			Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}},
		},
		url: "https://" + addresses["reviews"] + "/validate",
	}
	return nil
}

// servedAddresses finds in a log which part serves at which address.
func servedAddresses(log string) map[string]string {
	found := map[string]string{}
	for line := range strings.Lines(log) {
		var entry struct{ Msg, Name, Address string }
		if json.Unmarshal([]byte(line), &entry) == nil && entry.Msg == "serving" {
			found[entry.Name] = entry.Address
		}
	}
	return found
}

func isOK(ctx context.Context, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close() //nolint:errcheck // only read
	text, err := io.ReadAll(io.LimitReader(response.Body, 4096))
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", response.Status, strings.TrimSpace(string(text)))
	}
	return err
}
