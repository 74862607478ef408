package floor

import "fmt"

// Bounds of what is looked at, so that an object costs at most half of what the API server spends on one. An object with more counts as one that asks for a guarded pipe.
const (
	// longestPath is in characters, of a path and of a subPath. It is that of the webhook configuration's match conditions.
	longestPath = 256
	// mostItems is how many volumes, containers of a kind and annotations an object may have.
	mostItems = 400
	// mostMounts is how many mounts all containers may have together.
	mostMounts = 1000
	// mostDoors is how many volumes may lead to pipes, or to guarded directories where these are refused.
	mostDoors = 32
	// mostComparisons is how many containers that ask for something may be compared with subjects, each counted as often as it weighs.
	mostComparisons = mostItems * 32
	// mostTerms bounds terms of a node affinity, expressions in each and values in each of these. More of them prove nothing.
	mostTerms = 32
)

// holder is the part of an object that is a pod, or a template of pods. object is "object" or "oldObject"; both are of any type, or the API server would check the expression
// against the type of each kind.
func holder(object string) string {
	o := "dyn(" + object + ")"
	return fmt.Sprintf("(%[1]s.kind == 'Pod' ? %[1]s : %[1]s.kind == 'PodTemplate' ? %[1]s.?template.orValue({}) : "+
		"%[1]s.kind == 'CronJob' ? %[1]s.?spec.?jobTemplate.?spec.?template.orValue({}) : %[1]s.?spec.?template.orValue({}))", o)
}

// mayRunOnWindows is about the specification "spec". It is pipeguard.mayRunOnWindows of the chart without its bound, and isLinux of package admission.
var mayRunOnWindows = fmt.Sprintf(`!(spec.?os.?name.orValue('') == 'linux' || spec.?nodeSelector[?'kubernetes.io/os'].orValue('') == 'linux' ||
  [spec.?affinity.?nodeAffinity.?requiredDuringSchedulingIgnoredDuringExecution.?nodeSelectorTerms.orValue([])].exists(terms,
    terms != null && terms.size() > 0 && terms.size() <= %[1]d &&
    terms.all(term, [term.?matchExpressions.orValue([])].exists(expressions, expressions.size() <= %[1]d &&
      expressions.exists(e, e.key == 'kubernetes.io/os' && [e.?values.orValue([])].exists(values, values.size() <= %[1]d &&
        (e.operator == 'In' && values == ['linux'] || e.operator == 'NotIn' && 'windows' in values))))))) `, mostTerms)

// lists are the lists of containers of the specification "spec".
const lists = "[spec.?containers.orValue([]), spec.?initContainers.orValue([]), spec.?ephemeralContainers.orValue([])]"

// isTooLarge is about the pod or template "held" and its specification "spec". characters is how many all its host paths may have together.
func isTooLarge(characters int) string {
	return fmt.Sprintf("(spec.?volumes.orValue([]).size() > %[1]d || held.?metadata.?annotations.orValue({}).size() > %[1]d || %[2]s.exists(list, list.size() > %[1]d) || "+
		"%[2]s.map(list, list.map(container, container.?volumeMounts.orValue([]).size()).sum()).sum() > %[3]d || "+
		"spec.?volumes.orValue([]).map(volume, volume.?hostPath.?path.orValue('').size()).sum() > %[4]d)", mostItems, lists, mostMounts, characters)
}

// asks says that the pod or template "held" asks for something of its node that is of a kind that a floor can refuse.
func (o *objects) asks() string {
	asks := "spec.?volumes.orValue([]).exists(volume, has(volume.hostPath))"
	if o.refusesHostProcess {
		asks += " || spec.?securityContext.?windowsOptions.?hostProcess.orValue(false) || " + lists +
			".exists(list, list.exists(container, container.?securityContext.?windowsOptions.?hostProcess.orValue(false))) || held.?metadata.?annotations.orValue({}).size() > 0"
	}
	return asks
}
