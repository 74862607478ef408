package main

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/pipeguard/pipeguard/cmd/proxy/internal/install"
	"github.com/pipeguard/pipeguard/internal/filetrust"
	"github.com/pipeguard/pipeguard/internal/httpsclient"
)

// Where the service finds what it asks the kubelet with.
const (
	kubeletTokenFile = dataDir + `\` + install.KubeletTokenName
	kubeletCAFile    = dataDir + `\` + install.KubeletCAName
)

// maxCertificates bounds a file of certificates, in bytes.
const maxCertificates = 256 << 10

// identityFlags say where the installer finds what the service asks the kubelet with.
type identityFlags struct {
	from         string   // directory with the files token and ca.crt, as the kubelet fills it
	certificates []string // files in which the kubelet of this node keeps its own certificate
}

func (f *identityFlags) register(set *flag.FlagSet) {
	set.StringVar(&f.from, "identity-from", "", "`directory` with the files token and ca.crt, which are copied over "+kubeletTokenFile+" and "+kubeletCAFile+" whenever they change")
	set.Func("kubelet-certificate", "`file` in which the kubelet of this node keeps its own certificate, which is added to "+kubeletCAFile+"; it may be missing, and the flag may be repeated", func(file string) error {
		f.certificates = append(f.certificates, file)
		return nil
	})
}

func (f *identityFlags) check() error {
	if f.from == "" && len(f.certificates) > 0 {
		return errors.New("--kubelet-certificate needs --identity-from")
	}
	return nil
}

// copies are the files that the installation keeps for the service.
func (f *identityFlags) copies() []install.Copy {
	if f.from == "" {
		return nil
	}
	return []install.Copy{
		{From: filepath.Join(f.from, "token"), To: kubeletTokenFile, Read: readKubeletToken},
		{From: filepath.Join(f.from, "ca.crt"), To: kubeletCAFile, Read: f.readAuthorities},
	}
}

func readKubeletToken(file string) ([]byte, error) {
	token, err := httpsclient.ReadToken(file)
	if err != nil {
		return nil, err
	}
	return []byte(token), nil
}

// readAuthorities reads the authorities of the cluster, and adds the certificates of this node's kubelet: many kubelets have one that
// no authority has signed. One that cannot be taken is left out, and is an error beside the rest.
func (f *identityFlags) readAuthorities(file string) ([]byte, error) {
	text, err := filetrust.ReadSmall(file, maxCertificates)
	if err != nil {
		return nil, err
	}
	if !x509.NewCertPool().AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s holds no certificate in PEM", file)
	}
	var errs []error
	for _, file := range f.certificates {
		own, err := readOwnCertificate(file)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, fmt.Errorf("the kubelet's certificate is not taken: %w", err))
		}
		text = append(text, own...)
	}
	if len(errs) > 0 {
		return text, &install.Incomplete{Err: errors.Join(errs...)}
	}
	return text, nil
}

// readOwnCertificate returns the first certificate of a file, in PEM, and nothing else: the kubelet keeps its key in the same file.
// Kubelets that renew their certificate have a link that names the file of now. Only its name is taken from it, so that it leads to no
// other directory.
func readOwnCertificate(file string) ([]byte, error) {
	info, err := os.Lstat(file)
	if err == nil && info.Mode()&fs.ModeSymlink != 0 {
		var target string
		if target, err = os.Readlink(file); err == nil {
			file = filepath.Join(filepath.Dir(file), filepath.Base(target))
		}
	}
	if err != nil {
		return nil, err
	}
	text, err := filetrust.ReadPlaced(file, maxCertificates)
	if err != nil {
		return nil, err
	}
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		return append([]byte("\n"), pem.EncodeToMemory(&pem.Block{Type: block.Type, Bytes: block.Bytes})...), nil
	}
	return nil, fmt.Errorf("%s holds no certificate in PEM", file)
}
