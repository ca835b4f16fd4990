/** Abbreviations that the API's names contain. */
const UPPER = new Set(["API", "CPU", "DNS", "GPU", "GPUS", "ID", "IP", "NUMA", "OIDC", "OK", "OOM", "TLS", "VM"]);

/** Names that would be unclear as plain words. */
const SPECIAL: Readonly<Record<string, string>> = {
  KILLED_OOM: "killed: out of memory",
  OOM: "out of memory",
  // The store knows only that an execution has not ended.
  LIVE: "running",
};

/** A state or reason of the API as words: "NO_ROOM" is "no room", "GPU_LOST" is "GPU lost". */
export function stateWords(name: string): string {
  if (Object.hasOwn(SPECIAL, name)) return SPECIAL[name] ?? name;
  const words = name.split("_").map((word) => (UPPER.has(word) ? word.replace(/S$/, "s") : word.toLowerCase()));
  return words.join(" ");
}

/** A reason and its message in words: "disk full: 1 MiB left". Many messages already start with their reason. */
export function reasonText(reason: string, message: string): string {
  const words = stateWords(reason);
  return message.startsWith(words) ? message : [words, message].filter((part) => part !== "").join(": ");
}
