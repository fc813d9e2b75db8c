-- Variants that are served but left out of results, and the order of metrics in results as lists of UUIDs.
ALTER TABLE experiment ADD COLUMN excluded_variants TEXT NOT NULL DEFAULT '[]';
ALTER TABLE experiment ADD COLUMN primary_metrics_order TEXT;
ALTER TABLE experiment ADD COLUMN secondary_metrics_order TEXT;
