-- What the variants of a web experiment change on a page; NULL: the experiment is not one.
ALTER TABLE experiment ADD COLUMN web_variants TEXT;
