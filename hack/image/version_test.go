package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

const product = "../.."

// A chart that is installed without a tag finds what make image made and -push pushed.
func TestArchivesAreOfTheChartsRelease(t *testing.T) {
	version, err := chartVersion(product)
	if err != nil {
		t.Fatal(err)
	}
	output, _ := archives(t, version)
	for _, image := range images {
		index, from, err := open(archivePath(output, image), t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		if want := "pipeguard/" + image + ":" + strings.TrimPrefix(version, "v"); from != want {
			t.Errorf("the archive of %s has the image %s, want %s", image, from, want)
		}
		for _, config := range configs(t, index) {
			if got := config.Config.Labels["org.opencontainers.image.version"]; got != version {
				t.Errorf("%s says that it is of %q, want %q", image, got, version)
			}
		}
	}
}

func configs(t *testing.T, index v1.ImageIndex) (all []*v1.ConfigFile) {
	t.Helper()
	list, err := index.IndexManifest()
	if err != nil || len(list.Manifests) == 0 {
		t.Fatalf("%d manifests, %v", len(list.Manifests), err)
	}
	for _, m := range list.Manifests {
		image, err := index.Image(m.Digest)
		if err != nil {
			t.Fatal(err)
		}
		config, err := image.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, config)
	}
	return all
}

func TestAReleaseIsATagToo(t *testing.T) {
	for line, want := range map[string]string{
		"appVersion: v1.2.3": "v1.2.3", "appVersion: v0.1.0-dev": "v0.1.0-dev", "appVersion: v1.0.0-rc.1": "v1.0.0-rc.1",
		"appVersion: 1.2.3": "", "appVersion: v1.2": "", "appVersion: v1.2.3+build": "", "version: 1.2.3": "", "": "",
		"appVersion: v1.2.3\nappVersion: v1.2.4": "", "appVersion: v1.2.3 -X x": "",
	} {
		source := t.TempDir()
		dir := filepath.Join(source, "charts", "pipeguard")
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "Chart.yaml"), []byte("name: pipeguard\n"+line+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := chartVersion(source); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v, want %q", line, got, err, want)
		}
	}
}
