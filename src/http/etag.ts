/** Entity tags: clients that have the current content get 304. */

/** Weak ETag of a content: gzip and identity share it. */
export function weakTag(content: string | Uint8Array): string {
  return `W/"${new Bun.CryptoHasher("sha256").update(content).digest("hex").slice(0, 32)}"`;
}

/** Whether an `If-None-Match` header contains a tag; strong and weak forms of a tag are equal. */
export function isNotModified(ifNoneMatch: string | null | undefined, etag: string): boolean {
  if (!ifNoneMatch) return false;
  if (ifNoneMatch.trim() === "*") return true;
  const bare = (tag: string) => tag.trim().replace(/^W\//, "");
  return ifNoneMatch.split(",").some((tag) => bare(tag) === bare(etag));
}
