/** Entity tags: clients that have the content already get 304. */

/** The tag of a content; weak, because compressed bytes have the same one. */
export function weakTag(content: string | Uint8Array): string {
  return `W/"${new Bun.CryptoHasher("sha256").update(content).digest("hex").slice(0, 32)}"`;
}

/** Whether an `If-None-Match` header names a tag; strong and weak forms of the same tag are equal. */
export function isNotModified(ifNoneMatch: string | null | undefined, etag: string): boolean {
  if (!ifNoneMatch) return false;
  if (ifNoneMatch.trim() === "*") return true;
  const bare = (tag: string) => tag.trim().replace(/^W\//, "");
  return ifNoneMatch.split(",").some((tag) => bare(tag) === bare(etag));
}
