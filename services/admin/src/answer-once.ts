import { type Change, firstAnswer, type RequestKey, saveAnswer, type Tx } from "@rollcall/store";

/** How an answer is kept. */
export interface AnswerCodec<T> {
  encode(answer: T): Uint8Array;
  decode(bytes: Uint8Array): T;
}

/**
 * Do something once for each request id, whose first answer is given again. What is thrown rolls back the request id as
 * well: only what was done is remembered.
 *
 * @param key null when the request does not name itself: then it is done every time.
 */
export async function answerOnce<T>(
  tx: Tx,
  key: RequestKey | null,
  codec: AnswerCodec<T>,
  act: () => Promise<Change<T>>,
): Promise<Change<T>> {
  if (key === null) return act();
  const first = await firstAnswer(tx, key);
  if (first !== null) return { result: codec.decode(first), events: [] };
  const change = await act();
  await saveAnswer(tx, key, codec.encode(change.result));
  return change;
}
