"""The data model: frozen dataclasses and enums, no behaviour beyond what keeps them consistent."""
