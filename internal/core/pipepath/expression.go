package pipepath

import "strings"

// anyName stands for a variable where it is enough that a path mentions the NT directory of devices.
const anyName = `\??\`

// expression is what can be known of a subPathExpr: the values of variables come from the node, from Secrets and the like.
type expression struct {
	begin  string // the text before the first variable
	filled string // the whole text with anyName for each variable
	open   bool   // there is a variable
}

// parseExpression reads text as Kubernetes expands it (k8s.io/kubernetes/third_party/forked/golang/expansion):
// $(X) is a variable, $$ is $, and every other $ is itself.
func parseExpression(text string) expression {
	var e expression
	var b strings.Builder
	last := strings.LastIndexByte(text, ')')
	for i := 0; i < len(text); {
		switch at := text[i:]; {
		case strings.HasPrefix(at, "$$"):
			b.WriteByte('$')
			i += 2
		case strings.HasPrefix(at, "$(") && i < last:
			if !e.open {
				e.open, e.begin = true, b.String()
			}
			b.WriteString(anyName)
			i += strings.IndexByte(at, ')') + 1
		default:
			b.WriteByte(text[i])
			i++
		}
	}
	e.filled = b.String()
	if !e.open {
		e.begin = e.filled
	}
	return e
}

// Constant returns the subPath that a subPathExpr without variables is.
func Constant(expr string) (subPath string, ok bool) {
	e := parseExpression(expr)
	return e.begin, !e.open
}

// JudgeMountExpr judges the path of a volume joined with the subPathExpr of a mount, like [Guard.JudgeMount].
//
// A variable may stand for any text. Where the known text before it does not prove that the path stays an ordinary one,
// the mount names no single pipe, and is never allowed. A ".." in a variable counts in device and UNC paths, as it does
// in a subPath; below an ordinary directory it does not: the kubelet refuses it, and nearly every subPathExpr would match.
func (g *Guard) JudgeMountExpr(hostPath, expr string) Verdict {
	e := parseExpression(expr)
	if !e.open {
		return g.JudgeMount(hostPath, e.begin)
	}
	volume := g.Judge(hostPath)
	if volume.NeverAllowed {
		return volume
	}
	known := joinSubPath(hostPath, e.begin)
	if name := Canonical(known); name.Kind.NeverAllowed() {
		return Verdict{Name: name, Match: true, NeverAllowed: true, SubPath: true}
	}
	if staysOrdinary(known) && Canonical(joinSubPath(hostPath, e.filled)).Kind == KindPath {
		return volume
	}
	return undecided(joinSubPath(hostPath, expr))
}

// JudgeAnyMount judges the path of a volume whose mounts are not seen, as those of a PersistentVolume, like
// [Guard.JudgeMount] with the worst subPath. It counts no "..": the kubelet refuses it in a subPath.
func (g *Guard) JudgeAnyMount(hostPath string) Verdict {
	volume := g.Judge(hostPath)
	if below := joinSubPath(hostPath, ""); volume.Kind == KindPath && !staysOrdinary(below) {
		return undecided(below)
	}
	return volume // what is below another device, a share or a pipe that is not guarded remains below it
}

// undecided is the verdict on a path of which a part is not known, and which may become that of a pipe.
func undecided(path string) Verdict {
	name := Name{Kind: KindMalformed, Canonical: flip(Fold(path))}
	return Verdict{Name: name, Match: true, NeverAllowed: true, SubPath: true}
}

// continuations are what makes a device path of a beginning with one separator, from the segment on that is not complete:
// the names that [singleLead] looks at, and what must be behind them.
var continuations = [...]string{
	`??\x`, `dosdevices\x`, `global??\x`, `device\namedpipe\x`, `namedpipe\x`,
	`sessions\x\dosdevices\x`, `silos\x\device\x`,
	`mup\x\x`, `lanmanredirector\x\x`, `dfsclient\x\x`, `windfs\x\x`, `vmsmb\x\x`,
}

// staysOrdinary reports whether path is of kind path whatever text without ".." follows it.
func staysOrdinary(path string) bool {
	if Canonical(path).Kind != KindPath {
		return false
	}
	text := flip(Fold(path))
	if !strings.HasPrefix(text, `\`) {
		return strings.ContainsAny(text, `\:`) // else all of it may be the beginning of a scheme, or there is nothing
	}
	for _, c := range []string{`x\dosdevices\x`, `\dosdevices\x`} { // behind the number of a session or silo, which may be complete
		if Canonical(text+c).Kind != KindPath {
			return false
		}
	}
	last := strings.LastIndexByte(text, '\\') + 1
	begin, segment := text[:last], strings.TrimRight(text[last:], ". ")
	for _, c := range continuations {
		if strings.HasPrefix(c, segment) && Canonical(begin+c).Kind != KindPath {
			return false
		}
	}
	return true
}

// JudgeMountExpr says what a mount gets hold of, of what subPathExpr may expand to within hostPath, like [Powers.JudgeMount].
// The variable's segment is taken for a short name, which may be that of any file; what is below it is not guessed.
func (p *Powers) JudgeMountExpr(hostPath, expr string) Reach {
	e := parseExpression(expr)
	if !e.open {
		return p.JudgeMount(hostPath, e.begin)
	}
	known := joinSubPath(hostPath, e.begin)
	directory := known[:strings.LastIndexAny(known, `\/`)+1]
	for _, path := range []string{hostPath, directory, directory + "~1", joinSubPath(hostPath, e.filled)} {
		if at := p.judge(path); at.Power != PowerNone {
			return at
		}
	}
	return Reach{}
}

// JudgeAnyMount says what a volume gets hold of whose mounts are not seen: what its path does, or the most powerful
// thing which one subPath names directly below it.
func (p *Powers) JudgeAnyMount(hostPath string) Reach { return p.JudgeMountExpr(hostPath, "$(X)") }
