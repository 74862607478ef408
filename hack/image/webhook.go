package main

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// user is the numeric account that the webhook runs as. It is numeric so that a kubelet can prove that it is not root.
const user = "65532:65532"

// platforms are the architectures of Linux that the webhook's image is for.
var platforms = []string{"amd64", "arm64"}

// buildWebhook writes pipeguard-webhook.oci.tar and returns its path.
func buildWebhook(version, source, output string) (string, error) {
	binaries := map[string][]byte{}
	for _, arch := range platforms {
		files, err := compile(source, "linux", arch, "./cmd/webhook")
		if err != nil {
			return "", err
		}
		binaries[arch] = files["webhook"]
	}
	index, err := webhookIndex(version, binaries)
	if err != nil {
		return "", err
	}
	return write(index, "webhook", version, output)
}

// webhookIndex is the webhook's image, of a binary for each platform.
func webhookIndex(version string, binaries map[string][]byte) (v1.ImageIndex, error) {
	var index v1.ImageIndex = mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, arch := range platforms {
		image, err := assemble(version, arch, binaries[arch])
		if err != nil {
			return nil, fmt.Errorf("assemble for linux/%s: %w", arch, err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add:        image,
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: arch}},
		})
	}
	return index, nil
}

// assemble puts the binary and an account file into one layer on an empty base.
func assemble(version, arch string, binary []byte) (v1.Image, error) {
	content, err := layer(binary)
	if err != nil {
		return nil, err
	}
	image, err := stack(content)
	if err != nil {
		return nil, err
	}
	return mutate.ConfigFile(image, &v1.ConfigFile{
		OS:           "linux",
		Architecture: arch,
		Created:      v1.Time{Time: epoch},
		RootFS:       must(image.ConfigFile()).RootFS,
		Config: v1.Config{
			Entrypoint: []string{"/webhook"},
			User:       user,
			WorkingDir: "/",
			Labels:     labels("pipeguard-webhook", version),
		},
	})
}

// stack makes an image of layers, each a tar archive, without a config yet.
func stack(layers ...[]byte) (v1.Image, error) {
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	for _, content := range layers {
		opener := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil }
		l, err := tarball.LayerFromOpener(opener, tarball.WithMediaType(types.OCILayer))
		if err != nil {
			return nil, err
		}
		if image, err = mutate.AppendLayers(image, l); err != nil {
			return nil, err
		}
	}
	return image, nil
}

// layer is a tar archive with the binary and the accounts.
func layer(binary []byte) ([]byte, error) {
	var buffer bytes.Buffer
	w := tar.NewWriter(&buffer)
	files := []struct {
		name    string
		mode    int64
		content []byte
	}{
		{"etc/passwd", 0o644, []byte("nonroot:x:65532:65532:nonroot:/:/sbin/nologin\n")},
		{"webhook", 0o755, binary},
	}
	if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: "etc/", Mode: 0o755, ModTime: epoch}); err != nil {
		return nil, err
	}
	for _, f := range files {
		header := &tar.Header{Typeflag: tar.TypeReg, Name: f.name, Mode: f.mode, Size: int64(len(f.content)), ModTime: epoch}
		if err := w.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.content); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return buffer.Bytes(), nil
}
