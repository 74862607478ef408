package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// archives writes both images as make image does, of small programs, and returns their directory and indexes by name.
func archives(t *testing.T, version string) (output string, indexes map[string]v1.ImageIndex) {
	t.Helper()
	output, indexes = t.TempDir(), map[string]v1.ImageIndex{}
	var err error
	if indexes["webhook"], err = webhookIndex(version, map[string][]byte{"amd64": incompressible(3 << 20), "arm64": []byte("arm")}); err != nil {
		t.Fatal(err)
	}
	if indexes["node"], err = nodeIndex(version, programs); err != nil {
		t.Fatal(err)
	}
	for image, index := range indexes {
		if _, err := write(index, image, version, output); err != nil {
			t.Fatal(err)
		}
	}
	return output, indexes
}

func incompressible(size int) []byte {
	out := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{}).Read(out) // it never fails
	return out
}

// serve starts a registry behind a handler of the test's, and returns its host and port.
func serve(t *testing.T, wrap func(http.Handler) http.Handler) string {
	t.Helper()
	t.Setenv("DOCKER_CONFIG", t.TempDir()) // nobody's own credentials
	handler := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	if wrap != nil {
		handler = wrap(handler)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

func digestOf(t *testing.T, index v1.ImageIndex) v1.Hash {
	t.Helper()
	digest, err := index.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return digest
}

func TestWhatIsPushedIsWhatTheArchivesHave(t *testing.T) {
	output, indexes := archives(t, "v1.2.3")
	host := serve(t, nil)
	var out, progress bytes.Buffer
	to := target{registry: host + "/team/pipeguard", version: "v1.2.3", progress: &progress}
	for range 2 { // what is there already is no error
		out.Reset()
		if err := push(t.Context(), to, output, &out); err != nil {
			t.Fatal(err)
		}
	}
	var want strings.Builder
	for _, image := range images {
		fmt.Fprintf(&want, "%s/team/pipeguard/%s:1.2.3@%s\n", host, image, digestOf(t, indexes[image]))
		tag, err := name.NewTag(host + "/team/pipeguard/" + image + ":1.2.3")
		if err != nil {
			t.Fatal(err)
		}
		pulled, err := remote.Index(tag)
		if err != nil {
			t.Fatal(err)
		}
		if got := digestOf(t, pulled); got != digestOf(t, indexes[image]) {
			t.Errorf("%s is %s in the registry, and %s in the archive", image, got, digestOf(t, indexes[image]))
		}
		if err := validate.Index(pulled); err != nil { // every manifest, config and layer, by its digest and size
			t.Errorf("%s: %v", image, err)
		}
		if got, want := platformsOf(t, pulled), platformsOf(t, indexes[image]); !slices.Equal(got, want) || len(got) == 0 {
			t.Errorf("%s is for %q, want %q", image, got, want)
		}
	}
	if out.String() != want.String() {
		t.Errorf("written %q, want %q", out.String(), want.String())
	}
	if !strings.Contains(progress.String(), ": 3.0 of 3.") || !strings.Contains(progress.String(), "/webhook:1.2.3: ") {
		t.Errorf("the progress is %q", progress.String())
	}
}

func platformsOf(t *testing.T, index v1.ImageIndex) (all []string) {
	t.Helper()
	list, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range list.Manifests {
		all = append(all, m.Platform.String())
	}
	return all
}

// login makes a registry that asks for a name and a password, which docker's configuration may have.
func login(user, password string) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if u, p, _ := r.BasicAuth(); u != user || p != password {
				w.Header().Set("WWW-Authenticate", `Basic realm="here"`)
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}

func TestCredentialsAreThoseOfDocker(t *testing.T) {
	output, _ := archives(t, "v1.2.3")
	host := serve(t, login("ann", "secret"))
	to := target{registry: host, version: "v1.2.3", progress: io.Discard}
	err := push(t.Context(), to, output, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "docker login "+host) || !strings.Contains(err.Error(), "push to webhook") {
		t.Errorf("without credentials: %v", err)
	}
	config, err := json.Marshal(map[string]any{"auths": map[string]any{host: map[string]string{"auth": base64.StdEncoding.EncodeToString([]byte("ann:secret"))}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(os.Getenv("DOCKER_CONFIG"), "config.json"), config, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := push(t.Context(), to, output, io.Discard); err != nil {
		t.Errorf("with credentials: %v", err)
	}
}

func TestARegistryThatHasAnotherImageIsAnError(t *testing.T) {
	output, _ := archives(t, "v1.2.3")
	host := serve(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodHead && strings.HasSuffix(r.URL.Path, "/manifests/1.2.3") {
				w.Header().Set("Docker-Content-Digest", "sha256:"+strings.Repeat("0", 64))
				w.Header().Set("Content-Type", "application/vnd.oci.image.index.v1+json")
				w.Header().Set("Content-Length", "1")
				return
			}
			next.ServeHTTP(w, r)
		})
	})
	err := push(t.Context(), target{registry: host, version: "v1.2.3", progress: io.Discard}, output, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "0000 in the registry, and sha256:") {
		t.Errorf("%v", err)
	}
}

func TestPushSaysWhatIsWrong(t *testing.T) {
	old, _ := archives(t, "v1.2.2")
	damaged, _ := archives(t, "v1.2.3")
	if err := os.WriteFile(archivePath(damaged, "webhook"), []byte("no archive"), 0o600); err != nil {
		t.Fatal(err)
	}
	good, _ := archives(t, "v1.2.3")
	host := serve(t, func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/v2/" {
				return
			}
			http.Error(w, `{"errors":[{"code":"NAME_UNKNOWN","message":"no such repository"}]}`, http.StatusNotFound)
		})
	})
	for registry, c := range map[string]struct{ output, says string }{
		"":                              {good, "-push wants a registry"},
		"https://registry.example.com":  {good, "without a scheme"},
		"registry":                      {good, "want HOST[:PORT][/PATH]"},
		"pipeguard/webhook":             {good, "want HOST[:PORT][/PATH]"},
		"registry.example.com/Upper":    {good, "-push registry.example.com/Upper: "},
		"registry.example.com/a:latest": {good, "-push registry.example.com/a:latest: "},
		"registry.example.com/":         {good, "want HOST[:PORT][/PATH]"},
		"registry.example.com/../a":     {good, "want HOST[:PORT][/PATH]"},
		"localhost:1":                   {t.TempDir(), "pipeguard-webhook.oci.tar is not there: run make image first"},
		"localhost:2":                   {old, "it is of 1.2.2 and the chart of 1.2.3: run make image"},
		"localhost:3":                   {damaged, "read a tar archive"},
		host:                            {good, "want the repository webhook to be made first"},
	} {
		err := push(t.Context(), target{registry: registry, version: "v1.2.3", progress: io.Discard}, c.output, io.Discard)
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("to %q: %v, want %q", registry, err, c.says)
		}
	}
}

func TestAPushThatIsInterruptedEnds(t *testing.T) {
	output, _ := archives(t, "v1.2.3")
	ctx, cancel := context.WithCancel(t.Context())
	host := serve(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPatch {
				cancel()
			}
			next.ServeHTTP(w, r)
		})
	})
	if err := push(ctx, target{registry: host, version: "v1.2.3", progress: io.Discard}, output, io.Discard); err == nil {
		t.Error("it ended as if all was pushed")
	}
}
