"""From records to numbers, tables, plots and pages. Never imports torch: a report is rebuilt on a laptop."""
