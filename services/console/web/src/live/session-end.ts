import type { CallError } from "./call-error.ts";
import { Observable } from "./observable.ts";

/**
 * Why the server rejects the page's session; null while it accepts it. The page then asks the user to sign
 * in.
 */
export const sessionEnded = new Observable<CallError | null>(null);
