package config

import "reflect"

// takeEffectAtOnce are the keys that a reload carries out.
var takeEffectAtOnce = map[string]bool{"apiVersion": true, "kind": true, "acl": true, "requestPolicy": true}

// RestartNeeded names the keys, such as limits.connections, in which a file differs from the one that the process was
// started with and that take effect at the next start alone.
func (p Proxy) RestartNeeded(started Proxy) []string {
	return differences("", reflect.ValueOf(started), reflect.ValueOf(p))
}

func differences(prefix string, a, b reflect.Value) (keys []string) {
	for i := range a.NumField() {
		field := a.Type().Field(i)
		key := prefix + field.Tag.Get("yaml")
		switch {
		case !field.IsExported() || takeEffectAtOnce[key]:
		case field.Type.Kind() == reflect.Struct:
			keys = append(keys, differences(key+".", a.Field(i), b.Field(i))...)
		case !reflect.DeepEqual(a.Field(i).Interface(), b.Field(i).Interface()):
			keys = append(keys, key)
		}
	}
	return keys
}
