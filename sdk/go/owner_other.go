//go:build !unix

package rollcall

import "os"

// belongsTo reports whether path is a directory. It ignores the owner, because other
// systems keep the directories of different users apart.
func belongsTo(path string, _ int) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
