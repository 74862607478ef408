// Command image builds the container images without a container engine and without a registry, each as one OCI archive:
// the webhook's, one static binary on an empty base for each platform, and the node's, for HostProcess containers. With
// -push it puts the archives that it built before into a registry.
//
// It is a module of its own, so that the product does not depend on what builds its images.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"os/signal"
	"path"
	"path/filepath"
	"syscall"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// epoch dates every file, so that equal sources give an equal image.
var epoch = time.Unix(0, 0).UTC()

func main() {
	log.SetFlags(0)
	log.SetPrefix("image: ")
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		stop()
		log.Fatal(err)
	}
}

// run builds the archives, or pushes them, as the arguments say.
func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("image", flag.ExitOnError)
	source := flags.String("source", ".", "root of the product's module")
	output := flags.String("output", "dist", "directory for the archives")
	registry := flags.String("push", "", "push the archives to this registry, such as registry.example.com/pipeguard, in place of building them")
	insecure := flags.Bool("insecure", false, "with -push: use plain HTTP where the registry has no TLS; localhost needs no flag")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	version, err := chartVersion(*source)
	if err != nil {
		return err
	}
	isPush := false
	flags.Visit(func(f *flag.Flag) { isPush = isPush || f.Name == "push" })
	if isPush {
		return push(ctx, target{registry: *registry, insecure: *insecure, version: version, progress: os.Stderr}, *output, os.Stdout)
	}
	for _, build := range []func(version, source, output string) (string, error){buildWebhook, buildNode} {
		archive, err := build(version, *source, *output)
		if err != nil {
			return err
		}
		fmt.Println(archive)
	}
	return nil
}

// compile returns the static binaries of commands such as ./cmd/webhook for one platform, by their file names.
func compile(source, goos, arch string, commands ...string) (map[string][]byte, error) {
	dir, err := os.MkdirTemp("", "pipeguard-image-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	args := []string{"build", "-trimpath", "-o", dir + "/", "-tags", "grpcnotrace", "-ldflags", "-s -w"}
	cmd := exec.Command("go", append(args, commands...)...)
	cmd.Dir = source
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+goos, "GOARCH="+arch)
	if message, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("compile for %s/%s: %w\n%s", goos, arch, err, message)
	}
	binaries := map[string][]byte{}
	for _, command := range commands {
		name := path.Base(command)
		if goos == "windows" {
			name += ".exe"
		}
		if binaries[name], err = os.ReadFile(filepath.Join(dir, name)); err != nil {
			return nil, err
		}
	}
	return binaries, nil
}

// labels say what an image is.
func labels(title, version string) map[string]string {
	return map[string]string{
		"org.opencontainers.image.title":    title,
		"org.opencontainers.image.version":  version,
		"org.opencontainers.image.licenses": "Apache-2.0",
	}
}

// must returns the config file of an image that was just made in memory.
func must(config *v1.ConfigFile, err error) *v1.ConfigFile {
	if err != nil {
		panic(err) // an image built from values in memory always has a config
	}
	return config
}
