//go:build unix

package rollcall

import (
	"os"
	"syscall"
)

// belongsTo reports whether path is a directory of this user.
func belongsTo(path string, uid int) bool {
	info, err := os.Stat(path)
	if err != nil || !info.IsDir() {
		return false
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	return !ok || int(owner.Uid) == uid
}
