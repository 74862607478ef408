package acl

import (
	"slices"

	"github.com/pipeguard/pipeguard/internal/core/access"
)

// shape is a set of fields that patterns ask for. All patterns of a shape are looked up at once, by the caller's values
// of these fields. A directory or a prefix is looked up by each length that one of the patterns has.
type shape struct {
	user, exe, namespace, account, container, image bool
	exeDirs, imagePrefixes                          []int
	isExeDir, isImagePrefix                         bool
}

// add makes sure that there is a shape for the pattern.
func (x *index) add(key callerNames) {
	s := shape{
		user: key.user != "", exe: key.exe != "", namespace: key.namespace != "", account: key.account != "",
		container: key.container != "", image: key.image != "", isExeDir: isExeDir(key.exe), isImagePrefix: access.IsImagePrefix(key.image),
	}
	at := slices.IndexFunc(x.shapes, func(o shape) bool {
		o.exeDirs, o.imagePrefixes = nil, nil
		return o.equal(s)
	})
	if at < 0 {
		at = len(x.shapes)
		x.shapes = append(x.shapes, s)
	}
	if s.isExeDir {
		x.shapes[at].exeDirs = insert(x.shapes[at].exeDirs, len(key.exe))
	}
	if s.isImagePrefix {
		x.shapes[at].imagePrefixes = insert(x.shapes[at].imagePrefixes, len(key.image))
	}
}

func (s shape) equal(o shape) bool {
	return s.user == o.user && s.exe == o.exe && s.namespace == o.namespace && s.account == o.account && s.container == o.container &&
		s.image == o.image && s.isExeDir == o.isExeDir && s.isImagePrefix == o.isImagePrefix
}

func insert(sorted []int, n int) []int {
	if at, found := slices.BinarySearch(sorted, n); !found {
		return slices.Insert(sorted, at, n)
	}
	return sorted
}

// each calls visit with every key under which patterns may cover the caller.
func (s *shape) each(c *caller, visit func(callerNames)) {
	have := &c.names
	if s.user && have.user == "" || s.exe && have.exe == "" || s.namespace && have.namespace == "" ||
		s.account && have.account == "" || s.container && have.container == "" || s.image && have.image == "" {
		return
	}
	var key callerNames
	if s.user {
		key.user = have.user
	}
	if s.namespace {
		key.namespace = have.namespace
	}
	if s.account {
		key.account = have.account
	}
	if s.container {
		key.container = have.container
	}
	if !s.isExeDir {
		if s.exe {
			key.exe = have.exe
		}
		s.eachImage(key, have.image, visit)
		return
	}
	for _, n := range s.exeDirs {
		if n >= len(have.exe) {
			return
		}
		if isExeDir(have.exe[:n]) {
			key.exe = have.exe[:n]
			s.eachImage(key, have.image, visit)
		}
	}
}

func (s *shape) eachImage(key callerNames, image string, visit func(callerNames)) {
	switch {
	case !s.image:
		visit(key)
	case s.isImagePrefix:
		for _, n := range s.imagePrefixes {
			if n < len(image) && access.IsImagePrefix(image[:n]) && access.CoversImage(image[:n], image) {
				key.image = image[:n]
				visit(key)
			}
		}
	default:
		digest, untagged := access.ImageKeys(image)
		for _, name := range [...]string{image, digest, untagged} {
			if name != "" {
				key.image = name
				visit(key)
			}
		}
	}
}
