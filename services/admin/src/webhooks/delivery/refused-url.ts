import { readUrl } from "@rollcall/config";
import { type Network, refusedUrl } from "@rollcall/domain";

/** Why events may not be posted to a URL, for people; null when nothing forbids it so far. */
export function refusedWebhookUrl(text: string, allowed: readonly Network[]): string | null {
  // The platform reads more than URLs of receivers: it leaves out white space, and takes a backslash for a slash.
  if (!/^https:\/\//i.test(text)) return "it must begin with https://";
  const url = URL.canParse(text) ? new URL(text) : null;
  const refused = url === null ? null : refusedUrl(url, allowed);
  if (refused !== null) return refused;
  const read = readUrl(text, { schemes: ["https"], paths: true, queries: true });
  if (!read.ok) return read.reason;
  return url === null || text !== text.trim() ? "it is no URL" : null;
}
