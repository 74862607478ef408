package floor

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pipeguard/pipeguard/internal/admission"
	"github.com/pipeguard/pipeguard/internal/core/access"
	"github.com/pipeguard/pipeguard/internal/core/pipepath"
)

// cut takes patterns of pipes apart, in lower case: exact names, and beginnings.
func cut(patterns []string) (exact, beginnings []string) {
	for _, p := range patterns {
		if beginning, ok := strings.CutSuffix(pipepath.Fold(p), "*"); ok {
			beginnings = append(beginnings, beginning)
		} else {
			exact = append(exact, beginning)
		}
	}
	return unique(exact), unique(beginnings)
}

func unique(list []string) []string {
	slices.Sort(list)
	return slices.Compact(list)
}

// policies are literals of the PipePolicies that govern pipes.
func policies(all map[string]admission.PipePolicy) (literals []string) {
	for _, name := range slices.Sorted(maps.Keys(all)) {
		p := all[name]
		if len(p.Pipes) == 0 {
			continue
		}
		exact, beginnings := cut(p.Pipes)
		literals = append(literals, fmt.Sprintf("{'name': dyn(%s), 'exact': %s, 'beginnings': %s, 'lenient': dyn(%t), 'privileged': dyn(%t), 'both': dyn(%t)}",
			quote(name), list(exact), list(beginnings), p.Action.Admits(),
			p.Requirement == admission.PrivilegedOrAllowedNamespace, p.Requirement == admission.PrivilegedAndAllowedNamespace))
	}
	return literals
}

// subjects are literals of the subjects of all policies, by their namespace, and the names of policies with one that is too large.
func subjects(all map[string]admission.PipePolicy) (literals map[string][]string, leftOut []string) {
	literals = map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		for i := range all[name].Subjects {
			s := &all[name].Subjects[i]
			if s.IsProcess() {
				continue
			}
			literal := subject(name, s)
			if len(literal) > longestSubject {
				leftOut = append(leftOut, name)
				continue
			}
			literals[s.Namespace] = append(literals[s.Namespace], literal)
		}
	}
	return literals, slices.Compact(leftOut)
}

func subject(policy string, s *access.Subject) string {
	until := ""
	if !s.ExpiresAt.IsZero() {
		until = s.End().UTC().Format(time.RFC3339)
	}
	names, beginnings, tags := images(s)
	var runAs []string
	if s.HostProcess != nil {
		for _, name := range s.HostProcess.RunAsUserNames {
			runAs = append(runAs, lowerASCII(name))
		}
	}
	return fmt.Sprintf("{'policy': dyn(%s), 'accounts': %s, 'containers': %s, 'anyImage': dyn(%t), 'images': %s, 'imageBeginnings': %s, 'tagBeginnings': %s, "+
		"'until': dyn(%s), 'hostProcess': dyn(%t), 'runAs': %s, 'within': dyn(%s)}",
		quote(policy), list(s.ServiceAccounts), list(s.Containers), len(s.Images) == 0, list(names), list(beginnings), list(tags),
		quote(until), s.HostProcess != nil, list(runAs), quote(withinPattern(s.HostPaths)))
}

// images are the patterns of a subject's images: names, beginnings of names, and beginnings that end within a tag.
func images(s *access.Subject) (names, beginnings, tags []string) {
	pattern := s.Pattern()
	for _, p := range pattern.Images {
		switch {
		case p == "": // means no image
		case !access.IsImagePrefix(p):
			names = append(names, p)
		case access.RestrictsTag(p):
			tags = append(tags, p)
		default:
			beginnings = append(beginnings, p)
		}
	}
	return names, beginnings, tags
}

func lowerASCII(s string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			r += 'a' - 'A'
		}
		return r
	}, s)
}

// imageName is the name of an image as package access takes it for one: what IsImage says but for two separators in a row and the length.
const imageName = `^[0-9A-Za-z_]([0-9A-Za-z_.-]*(:[0-9]+)?/[0-9A-Za-z_./-]*[0-9A-Za-z_]|([0-9A-Za-z_./-]*[0-9A-Za-z_])?)(:[0-9A-Za-z_][0-9A-Za-z_.-]{0,127})?(@sha256:[0-9a-f]{64})?$`

// imageKeys are the names by which a pattern can mean an image: the name itself first, and of one with a digest the digest, and the name without its tag.
// Of what is no image there are none.
func imageKeys(image string) string {
	return fmt.Sprintf("(%[1]s.size() <= 512 && %[1]s.matches(%[2]s) && !%[1]s.contains('//') && !%[1]s.contains('..') && %[1]s.matches(r'[0-9A-Za-z_]$') && !%[1]s.startsWith('sha256:') ? "+
		"(%[1]s.contains('@') ? [dyn(%[1]s), dyn(%[1]s.split('@')[1]), dyn((%[1]s.split('@')[0].matches(r':[^/]*$') ? %[1]s.split('@')[0].substring(0, %[1]s.split('@')[0].lastIndexOf(':')) : "+
		"%[1]s.split('@')[0]) + '@' + %[1]s.split('@')[1])] : [dyn(%[1]s)]) : [dyn('')].filter(none, false))", image, pattern(imageName))
}

// isContainer says whether a container is one that a subject names, by its name and its image.
const isContainer = "(s.containers == [] || c.name in s.containers) && (s.anyImage || c.images.exists(i, i in s.images) || c.images != [] && (" +
	"s.imageBeginnings.exists(x, c.images[0].startsWith(x) && c.images[0] != x) || !c.images[0].contains('@') && s.tagBeginnings.exists(x, c.images[0].startsWith(x) && c.images[0] != x)))"

// mayBeHostProcess says whether a subject permits a container to be a HostProcess container under the account that it declares.
const mayBeHostProcess = "s.hostProcess && (s.runAs == [] || c.runAs in s.runAs)"
