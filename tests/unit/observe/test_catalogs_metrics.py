"""What is scraped is what was counted."""

from prometheus_client import CollectorRegistry, generate_latest

from joiner.cloud.catalogcache import CacheStats
from joiner.observe.catalogs import CATALOG_METRICS, CatalogCollector

STATS = CacheStats(
    nodepool="default",
    hits=7,
    misses=2,
    refetches=1,
    stale_serves=3,
    build_seconds=0.25,
    stale=True,
    generation=(),
    moved=(),
)


def test_the_cache_counters_are_scraped_by_pool() -> None:
    registry = CollectorRegistry()
    registry.register(CatalogCollector(lambda: (STATS,)))

    text = generate_latest(registry).decode()

    assert 'joiner_catalog_cache_hits_total{nodepool="default"} 7.0' in text
    assert 'joiner_catalog_build_seconds_total{nodepool="default"} 0.25' in text
    assert 'joiner_catalog_stale{nodepool="default"} 1.0' in text


def test_every_metric_reads_a_field_that_exists() -> None:
    assert {field for field, _, _ in CATALOG_METRICS} <= set(CacheStats.__struct_fields__)
