package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// target says where images go.
type target struct {
	registry string    // a registry, and a path in it if there is one: registry.example.com/pipeguard
	insecure bool      // plain HTTP is allowed beyond this machine
	version  string    // release that the archives must be of
	progress io.Writer // for a person to read
}

// push puts the image of each archive below output into the registry, with the credentials of docker's configuration, and
// writes a line REGISTRY/NAME:TAG@DIGEST for each to out.
func push(ctx context.Context, to target, output string, out io.Writer) error {
	if err := to.check(); err != nil {
		return err
	}
	for _, image := range images {
		archive := archivePath(output, image)
		pushed, err := to.pushArchive(ctx, archive)
		if errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s is not there: run make image first", archive)
		} else if err != nil {
			return fmt.Errorf("push %s: %w", archive, err)
		}
		if _, err := fmt.Fprintln(out, pushed); err != nil {
			return err
		}
	}
	return nil
}

// check refuses what is no registry, before anything is read or sent.
func (to target) check() error {
	if to.registry == "" {
		return errors.New("-push wants a registry, such as registry.example.com/pipeguard (make push REGISTRY=…)")
	}
	host, _, _ := strings.Cut(to.registry, "/")
	if path.Clean(to.registry) != to.registry || !strings.ContainsAny(host, ".:") && host != "localhost" {
		// The library would take a first part without a dot for a directory of Docker Hub.
		return fmt.Errorf("-push %s: want HOST[:PORT][/PATH] without a scheme, such as registry.example.com/pipeguard or docker.io/NAME", to.registry)
	}
	_, err := to.tag("webhook")
	return err
}

// tag is the name that an image gets in the registry.
func (to target) tag(image string) (name.Tag, error) {
	options := []name.Option{name.StrictValidation}
	if to.insecure {
		options = append(options, name.Insecure)
	}
	tag, err := name.NewTag(to.registry+"/"+image+":"+tagOf(to.version), options...)
	if err != nil {
		return name.Tag{}, fmt.Errorf("-push %s: %w", to.registry, err)
	}
	return tag, nil
}

// pushArchive pushes the image of one archive and returns its name with its digest, after it has asked the registry for it.
func (to target) pushArchive(ctx context.Context, archive string) (pushed string, err error) {
	dir, err := os.MkdirTemp("", "pipeguard-push-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	index, from, err := open(archive, dir)
	if err != nil {
		return "", err
	}
	repository, tag, _ := strings.Cut(from, ":")
	if tag != tagOf(to.version) {
		return "", fmt.Errorf("it is of %s and the chart of %s: run make image", tag, tagOf(to.version))
	}
	as, err := to.tag(path.Base(repository))
	if err != nil {
		return "", err
	}
	digest, err := index.Digest()
	if err != nil {
		return "", err
	}
	if err := to.write(ctx, as, index); err != nil {
		return "", err
	}
	there, err := remote.Head(as, to.options(ctx)...)
	if err != nil {
		return "", fmt.Errorf("ask %s for what was pushed: %w", as, err)
	}
	if there.Digest != digest {
		return "", fmt.Errorf("%s is %s in the registry, and %s was pushed", as, there.Digest, digest)
	}
	return as.Name() + "@" + digest.String(), nil
}

// write sends the index, the images in it and their layers, and tells how far it is.
func (to target) write(ctx context.Context, as name.Tag, index v1.ImageIndex) error {
	updates, done := make(chan v1.Update, 1), make(chan struct{})
	go func() {
		defer close(done)
		report(to.progress, as, updates)
	}()
	err := remote.WriteIndex(as, index, append(to.options(ctx), remote.WithProgress(updates))...)
	<-done // the library closes the channel
	return explained(err, as)
}

// report writes a line for each tenth that is sent, of a mebibyte at least, and one for the end. The total is not known at first.
func report(w io.Writer, as name.Tag, updates <-chan v1.Update) {
	const mebi = 1 << 20
	var last v1.Update
	var told int64
	say := func() {
		fmt.Fprintf(w, "%s: %.1f of %.1f MiB\n", as, float64(last.Complete)/mebi, float64(last.Total)/mebi)
	}
	for u := range updates {
		if u.Error != nil {
			continue // it is returned too
		}
		if last = u; u.Complete-told >= max(u.Total/10, mebi) {
			told = u.Complete
			say()
		}
	}
	if told == 0 || told != last.Complete {
		say()
	}
}

func (to target) options(ctx context.Context) []remote.Option {
	return []remote.Option{
		remote.WithContext(ctx),
		remote.WithAuthFromKeychain(authn.DefaultKeychain),
		remote.WithTransport(guarded{to.insecure, remote.DefaultTransport}),
		remote.WithUserAgent("pipeguard-image/" + tagOf(to.version)),
	}
}
