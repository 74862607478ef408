package floor

import (
	"cmp"
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

const (
	// mostWeight is how much the subjects for one account of a namespace may weigh, so that sixteen containers can be compared with them.
	mostWeight = mostComparisons / 16
	// mostSubjects is how many bytes the literals of all subjects may have.
	mostSubjects = 500_000
)

// literal is a subject, ready to be put into an expression.
type literal struct {
	namespace, text string
	accounts        []string // none for all
	weight          int
}

// subjects are literals of the subjects of all policies, by their namespace, and the names of policies that have more than their share: with a subject that is too large, or one
// for which there is no room. The policies that say the least come first, so that one that says much takes room from itself alone.
func subjects(all map[string]admission.PipePolicy, guardsDirectories bool) (literals map[string][]string, leftOut []string) {
	said, size := map[string][]literal{}, map[string]int{}
	for name, p := range all {
		for i := range p.Subjects {
			if s := &p.Subjects[i]; !s.IsProcess() {
				l := literal{s.Namespace, subject(name, s, guardsDirectories), s.ServiceAccounts, weight(s, guardsDirectories)}
				said[name] = append(said[name], l)
				size[name] += len(l.text)
			}
		}
	}
	literals = map[string][]string{}
	shares, total := map[string]*share{}, 0
	for _, name := range slices.SortedFunc(maps.Keys(said), func(a, b string) int { return cmp.Or(size[a]-size[b], strings.Compare(a, b)) }) {
		for _, l := range said[name] {
			if shares[l.namespace] == nil {
				shares[l.namespace] = &share{accounts: map[string]int{}}
			}
			if len(l.text) > longestSubject || total+len(l.text) > mostSubjects || !shares[l.namespace].take(l.accounts, l.weight) {
				leftOut = append(leftOut, name)
				continue
			}
			total += len(l.text)
			literals[l.namespace] = append(literals[l.namespace], l.text)
		}
	}
	return literals, unique(leftOut)
}

// weight is what it costs to compare a container with a subject, in the cost of a subject that names one image and one container at most.
func weight(s *access.Subject, guardsDirectories bool) int {
	w := max(1, len(s.Images)) + max(1, len(s.Containers)) - 1
	if guardsDirectories {
		w += len(withinPattern(s.HostPaths)) / 8
	}
	return w
}

// share is what the subjects of a namespace weigh.
type share struct {
	all      int            // those for all accounts
	accounts map[string]int // the others, by account
}

// take adds a subject, unless those for one of its accounts would weigh too much.
func (s *share) take(accounts []string, weight int) bool {
	most := 0
	for _, name := range accounts {
		most = max(most, s.accounts[name])
	}
	if len(accounts) == 0 {
		for _, w := range s.accounts {
			most = max(most, w)
		}
	}
	if s.all+most+weight > mostWeight {
		return false
	}
	for _, name := range unique(slices.Clone(accounts)) {
		s.accounts[name] += weight
	}
	if len(accounts) == 0 {
		s.all += weight
	}
	return true
}

func subject(policy string, s *access.Subject, guardsDirectories bool) string {
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
	return fmt.Sprintf("{'policy': dyn(%s), 'weight': dyn(%d), 'accounts': %s, 'containers': %s, 'anyImage': dyn(%t), 'images': %s, 'imageBeginnings': %s, 'tagBeginnings': %s, "+
		"'until': dyn(%s), 'hostProcess': dyn(%t), 'runAs': %s, 'within': dyn(%s)}",
		quote(policy), weight(s, guardsDirectories), list(s.ServiceAccounts), list(s.Containers), len(s.Images) == 0, list(names), list(beginnings), list(tags),
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
