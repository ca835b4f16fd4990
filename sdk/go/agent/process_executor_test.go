//go:build unix

package agent

import "testing"

func TestExpand(t *testing.T) {
	type vector struct{ Word, Expanded string }
	for _, it := range vectors[[]vector](t, "expansions") {
		same(t, it.Word, expand([]string{it.Word}, []string{"a=1"}), []string{it.Expanded})
	}
}
