package main

import (
	"archive/tar"
	"bytes"
	"encoding/base64"
	"errors"
	"io"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

var programs = map[string][]byte{"proxy.exe": []byte("MZ proxy"), "pipeguard.exe": []byte("MZ pipeguard"), "LICENSE": []byte("license")}

func node(t *testing.T) v1.Image {
	t.Helper()
	image, err := assembleNode("v1.2.3", programs)
	if err != nil {
		t.Fatal(err)
	}
	return image
}

// entries returns the headers and contents of each layer, in their order.
func entries(t *testing.T, image v1.Image) (headers [][]*tar.Header, contents []map[string]string) {
	t.Helper()
	layers, err := image.Layers()
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range layers {
		r, err := l.Uncompressed()
		if err != nil {
			t.Fatal(err)
		}
		var list []*tar.Header
		content := map[string]string{}
		for archive := tar.NewReader(r); ; {
			h, err := archive.Next()
			if errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(archive)
			if err != nil {
				t.Fatal(err)
			}
			list, content[h.Name] = append(list, h), string(text)
		}
		headers, contents = append(headers, list), append(contents, content)
	}
	return headers, contents
}

func TestTheNodesImageIsForAnyWindows(t *testing.T) {
	config, err := node(t).ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if config.OS != "windows" || config.Architecture != "amd64" || config.OSVersion != "" || len(config.OSFeatures) > 0 {
		t.Errorf("%s/%s %q %q", config.OS, config.Architecture, config.OSVersion, config.OSFeatures)
	}
	if config.Config.User != "" || config.Config.WorkingDir != "" || len(config.Config.Env) > 0 {
		t.Errorf("user, directory or environment of a Windows that it does not have: %+v", config.Config)
	}
	manifest, err := node(t).Manifest()
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range manifest.Layers {
		if l.MediaType != types.OCILayer {
			t.Errorf("a layer is %s", l.MediaType)
		}
	}
	if manifest.MediaType != types.OCIManifestSchema1 || len(manifest.Layers) != 2 || len(config.RootFS.DiffIDs) != 2 {
		t.Errorf("%s with %d layers, %d of them in the config", manifest.MediaType, len(manifest.Layers), len(config.RootFS.DiffIDs))
	}
}

func TestTheBaseLayerIsWhatWindowsLooksFor(t *testing.T) {
	_, contents := entries(t, node(t))
	base := contents[0]
	for _, name := range []string{"DEFAULT", "SAM", "SECURITY", "SOFTWARE", "SYSTEM"} {
		if !strings.HasPrefix(base["Files/Windows/System32/config/"+name], "regf") {
			t.Errorf("%s is no hive", name)
		}
	}
	for name := range base {
		if strings.HasPrefix(name, "Hives") || strings.HasPrefix(name, "UtilityVM") {
			t.Errorf("a base layer for HostProcess containers has no %s", name)
		}
	}
}

func TestTheProgramsAreInTheRoot(t *testing.T) {
	_, contents := entries(t, node(t))
	for name, text := range programs {
		if contents[1]["Files/"+name] != string(text) {
			t.Errorf("%s is %q", name, contents[1]["Files/"+name])
		}
	}
	if _, ok := contents[1]["Hives"]; !ok || len(contents[1]) != len(programs)+2 {
		t.Errorf("%d entries, Hives among them: %t", len(contents[1]), ok)
	}
}

// Importing creates each name in turn, and fails where a directory is not there yet.
func TestEveryDirectoryComesBeforeWhatIsInIt(t *testing.T) {
	headers, _ := entries(t, node(t))
	for n, list := range headers {
		seen := map[string]bool{".": true}
		for _, h := range list {
			if !seen[path.Dir(h.Name)] || seen[h.Name] {
				t.Errorf("layer %d: %s has no directory yet, or is there twice", n, h.Name)
			}
			seen[h.Name] = true
			want := map[byte]string{tar.TypeDir: "16", tar.TypeReg: "32"}[h.Typeflag]
			if want == "" || h.PAXRecords["MSWINDOWS.fileattr"] != want {
				t.Errorf("layer %d: %s of type %c has the attributes %q", n, h.Name, h.Typeflag, h.PAXRecords["MSWINDOWS.fileattr"])
			}
			if !h.ModTime.Equal(epoch) {
				t.Errorf("layer %d: %s is of %s", n, h.Name, h.ModTime)
			}
		}
	}
}

func TestOnlyAdministratorsMayChangeTheFiles(t *testing.T) {
	headers, _ := entries(t, node(t))
	for _, h := range slices.Concat(headers...) {
		if path.Dir(h.Name) == "." {
			continue
		}
		sd, err := base64.StdEncoding.DecodeString(h.PAXRecords["MSWINDOWS.rawsd"])
		if err != nil || len(sd) < 40 {
			t.Fatalf("%s: a descriptor of %d bytes: %v", h.Name, len(sd), err)
		}
		const writes = 0x500D0156 // write, append, delete, change rights or owner, generic all and write
		for at := int(word(sd, 16)) + 8; at < len(sd); at += int(sd[at+2]) | int(sd[at+3])<<8 {
			account := sd[at+8 : at+8+8+4*int(sd[at+9])]
			isTrusted := bytes.Equal(account, system) || bytes.Equal(account, administrators)
			if !isTrusted && word(sd, at+4)&writes != 0 {
				t.Errorf("%s: % x may do %#x", h.Name, account, word(sd, at+4))
			}
		}
	}
}

func TestEqualProgramsGiveAnEqualArchive(t *testing.T) {
	var archives [2][]byte
	for i := range archives {
		index, err := nodeIndex("v1.2.3", programs)
		if err != nil {
			t.Fatal(err)
		}
		file, err := write(index, "node", "v1.2.3", t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		if path.Base(file) != "pipeguard-node.oci.tar" {
			t.Errorf("the archive is %s", file)
		}
		if archives[i], err = os.ReadFile(file); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(archives[0], archives[1]) {
		t.Error("the archives differ")
	}
	if !bytes.Contains(archives[0], []byte("docker.io/pipeguard/node:1.2.3")) {
		t.Error("the archive does not name its image")
	}
}
