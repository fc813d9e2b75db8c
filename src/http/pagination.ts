/** Pages of a list (contract: management-api 1.4). */

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
 * The page a query asks for. A limit or offset that makes no sense falls back to its default.
 *
 * @param limitMax a page has no more, whatever is asked for; `next` leads on.
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
 * @param url   absolute address of this page as clients see it; its other parameters are kept.
 * @param count how many results there are on all pages.
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
  // The first page carries no offset.
  if (offset <= 0) target.searchParams.delete("offset");
  else target.searchParams.set("offset", String(offset));
  return target.href;
}

/** A number of digits only, at least `minimum`, else undefined. */
function whole(text: string | null, minimum: number): number | undefined {
  if (text === null || !/^\s*\d{1,15}\s*$/.test(text)) return undefined;
  const value = Number(text);
  return value >= minimum ? value : undefined;
}
