package agent

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"net"
	"os"
	"slices"
	"strings"
)

// bootID returns the id of the machine's current boot. If the kernel provides no id, it returns a random
// id, which is valid for the lifetime of this process.
func bootID() string {
	if text, err := os.ReadFile("/proc/sys/kernel/random/boot_id"); err == nil {
		return strings.TrimSpace(string(text))
	}
	return rand.Text()
}

// machineFingerprint returns a value that differs between two machines even if their disks are copies of
// each other.
func machineFingerprint() string {
	id, _ := os.ReadFile("/etc/machine-id") // Without this file, the addresses distinguish machines.
	parts := []string{}
	interfaces, _ := net.Interfaces()
	for _, one := range interfaces {
		isLasting := one.Flags&net.FlagLoopback == 0 && len(one.HardwareAddr) > 0
		if _, err := os.Stat("/sys/class/net/" + one.Name + "/device"); isLasting && err == nil {
			parts = append(parts, one.HardwareAddr.String())
		}
	}
	slices.Sort(parts)
	sum := sha256.Sum256([]byte(strings.TrimSpace(string(id)) + "\n" + strings.Join(parts, "\n")))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}
