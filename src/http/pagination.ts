/** Pagination of lists (contract: management-api 1.4). */

const limitDefault = 100;

export interface Page {
  limit: number;
  offset: number;
}

/** The envelope of a list. */
export interface PageAnswer<Item> {
  count: number;
  next: string | null;
  previous: string | null;
  results: Item[];
}

/**
 * The requested page. An invalid limit or offset falls back to its default.
 *
 * @param limitMax maximum page size; `next` links to the rest.
 */
export function readPage(query: URLSearchParams, limitMax = Number.POSITIVE_INFINITY): Page {
  return {
    limit: Math.min(whole(query.get("limit"), 1) ?? limitDefault, limitMax),
    offset: whole(query.get("offset"), 0) ?? 0,
  };
}

/**
 * Wraps one page of results.
 *
 * @param url   absolute URL of this page as clients see it; its other parameters are preserved.
 * @param count number of results on all pages.
 */
export function pageAnswer<Item>(url: string, page: Page, count: number, results: Item[]): PageAnswer<Item> {
  const { limit, offset } = page;
  return {
    count,
    next: offset + limit < count ? address(url, limit, offset + limit) : null,
    previous: offset > 0 ? address(url, limit, offset - limit) : null,
    results,
  };
}

function address(url: string, limit: number, offset: number): string {
  const target = new URL(url);
  target.searchParams.set("limit", String(limit));
  // The first page has no offset.
  if (offset <= 0) target.searchParams.delete("offset");
  else target.searchParams.set("offset", String(offset));
  return target.href;
}

/** A string of digits with a value of at least `minimum`, else undefined. */
function whole(text: string | null, minimum: number): number | undefined {
  if (text === null || !/^\s*\d{1,15}\s*$/.test(text)) return undefined;
  const value = Number(text);
  return value >= minimum ? value : undefined;
}
