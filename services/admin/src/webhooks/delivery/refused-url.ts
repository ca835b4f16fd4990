import { readUrl } from "@rollcall/config";
import { type Network, refusedUrl } from "@rollcall/domain";

/** Explains why events cannot be delivered to a URL; null when the URL itself shows no reason. */
export function refusedWebhookUrl(text: string, allowed: readonly Network[]): string | null {
  // Check the text, because the URL parser accepts too much. It ignores white space, and reads a backslash as
  // a slash.
  if (!/^https:\/\//i.test(text)) return "it must start with https://";
  const url = URL.canParse(text) ? new URL(text) : null;
  const refused = url === null ? null : refusedUrl(url, allowed);
  if (refused !== null) return refused;
  const read = readUrl(text, { schemes: ["https"], paths: true, queries: true });
  if (!read.ok) return read.reason;
  return url === null || text !== text.trim() ? "it is not a URL" : null;
}
