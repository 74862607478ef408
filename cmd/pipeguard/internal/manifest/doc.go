// Package manifest reads Kubernetes objects from files of YAML or JSON documents, as kubectl would split them.
// It trusts no file: what two readers could understand differently is a fault, not a guess.
package manifest
