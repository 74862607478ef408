package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
	yamlutil "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/pipeguard/pipeguard/internal/atmost"
	"github.com/pipeguard/pipeguard/internal/plainyaml"
)

// maxNamespaces bounds a file of namespaces, in bytes. A Namespace as kubectl prints it takes about a thousand.
const maxNamespaces = 16 << 20

// namespaceLabels are labels by namespace, from a file.
type namespaceLabels map[string]map[string]string

// Labels returns the labels of a namespace.
func (n namespaceLabels) Labels(namespace string) map[string]string { return n[namespace] }

// loadNamespaces reads a file of Namespace objects (several documents, or a List, as kubectl prints them),
// or a mapping of names to labels. Without a file no namespace has labels.
func loadNamespaces(file string) (namespaceLabels, error) {
	if file == "" {
		return nil, nil
	}
	text, err := atmost.ReadAny(file, maxNamespaces)
	if err != nil {
		return nil, fmt.Errorf("read namespaces: %w", err)
	}
	labels, err := parseNamespaces(text)
	if err != nil {
		return nil, fmt.Errorf("read namespaces %s: %w", file, err)
	}
	return labels, nil
}

func parseNamespaces(text []byte) (namespaceLabels, error) {
	if err := plainyaml.Check(text); err != nil {
		return nil, err
	}
	labels := namespaceLabels{}
	documents := yamlutil.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for n := 1; ; n++ {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return labels, nil
		}
		if err == nil {
			err = labels.add(document)
		}
		if err != nil {
			return nil, fmt.Errorf("document %d: %w", n, err)
		}
	}
}

func (n namespaceLabels) add(document []byte) error {
	// Going through JSON keeps a number or a boolean what it is: read as YAML into a string, y would become "true".
	document, err := yaml.YAMLToJSONStrict(document)
	if err != nil {
		return err
	}
	var head struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
	}
	if err := json.Unmarshal(document, &head); err != nil || (head.APIVersion == "" && head.Kind == "") {
		var m namespaceLabels // nil for a document that is empty or consists of comments
		if err := decode(document, &m); err != nil {
			return fmt.Errorf("want Namespace objects, or a mapping of names to labels: %w", err)
		}
		for name, labels := range m {
			if err := n.set(name, labels); err != nil {
				return err
			}
		}
		return nil
	}
	var list corev1.NamespaceList
	switch head.APIVersion + " " + head.Kind {
	case "v1 Namespace":
		list.Items = make([]corev1.Namespace, 1)
		if err := decode(document, &list.Items[0]); err != nil {
			return err
		}
	case "v1 List", "v1 NamespaceList":
		if err := decode(document, &list); err != nil {
			return err
		}
	default:
		return fmt.Errorf("want a Namespace, found %s %s", head.APIVersion, head.Kind)
	}
	for _, item := range list.Items {
		if item.Kind != "Namespace" && head.Kind == "List" {
			return fmt.Errorf("want Namespaces in the list, found %q", item.Kind)
		}
		if err := n.set(item.Name, item.Labels); err != nil {
			return err
		}
	}
	return nil
}

func (n namespaceLabels) set(name string, labels map[string]string) error {
	if name == "" {
		return errors.New("a Namespace has no name")
	}
	if _, ok := n[name]; ok {
		return fmt.Errorf("namespace %q occurs twice", name)
	}
	n[name] = labels
	return nil
}

// decode refuses fields that into does not have.
func decode(document []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(document))
	d.DisallowUnknownFields()
	return d.Decode(into)
}
